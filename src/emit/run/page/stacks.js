// stacks: the flame graph of sampled call stacks, by thread, wall or CPU time, in either direction; and the hot lines.
const STACKS = DATA.stacks;
const WAITS = {  // states of a thread that is not running: words and color
  runnable: ["waiting for a CPU", "var(--critical)"],
  gil: ["waiting for the GIL", "var(--line-1)"],
  lock: ["waiting for a lock", "var(--line-3)"],
  disk: ["waiting for disk", "var(--line-4)"],
  network: ["waiting for the network", "var(--line-0)"],
  child: ["waiting for a child process", "var(--line-2)"],
  pipe: ["waiting for a pipe", "var(--line-2)"],
  gpu: ["waiting for a GPU", "var(--good)"],
  sleep: ["sleeping", "var(--line-5)"],
  other: ["waiting in a system call", "var(--line-5)"],
  unknown: ["state unknown", "var(--line-5)"],
};
const LEGEND = 8;  // packages with their own color
const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);

const stacks = {
  thread: -1,  // all
  cpu: false,
  reversed: false,
  lines: false,

  // ---- the data -----------------------------------------------------------------------------------
  // Nodes come before the nodes that they call: columns of numbers, and the waits of each in a flat list.
  read() {
    const n = STACKS.nodes, read = new Reader(STACKS.packed), open = [];
    Object.assign(this, {
      n,
      functions: rowsOf(STACKS.functions),
      threads: rowsOf(STACKS.threads),
      up: new Int32Array(n),
      call: new Int32Array(n),
      line: new Float64Array(n),
      owner: new Int32Array(n),
      busy: new Float64Array(n),
      ran: new Float64Array(n),
      waits: new Array(n),
    });
    let owner = -1;
    for (let i = 0; i < n; i++) {
      const depth = read.varint();
      if (depth === 0) owner = read.varint();
      open[depth] = i;
      this.up[i] = depth > 0 ? open[depth - 1] : -1;
      this.owner[i] = owner;
      this.call[i] = read.varint();
      this.line[i] = read.varint();
      this.ran[i] = read.varint();
      this.busy[i] = read.varint();
      this.waits[i] = [];
      for (let left = read.varint(); left > 0; left--)
        this.waits[i].push([STACKS.states[read.varint()], read.varint()]);
    }
    this.colors();
  },
  // The packages with the most self time get a color each.
  colors() {
    const sums = new Map();
    for (let i = 0; i < this.n; i++) {
      const name = this.functions[this.call[i]].package;
      sums.set(name, (sums.get(name) || 0) + this.busy[i]);
    }
    this.packages = [...sums].sort((a, b) => b[1] - a[1]);
    this.fills = new Map(this.packages.slice(0, LEGEND).map(([name], at) => [name, at]));
  },
  fill(name) { return this.fills.has(name) ? this.fills.get(name) : OTHERS; },

  // ---- the tree that is shown ------------------------------------------------------------------------
  newRow(above, name, more) {
    return {name, above, self: 0, total: 0, waits: new Map(), children: [], by: new Map(), ...more};
  },
  child(above, key, make) {
    let row = above.by.get(key);
    if (!row) {
      row = make();
      above.by.set(key, row);
      above.children.push(row);
      this.rows.push(row);
    }
    return row;
  },
  frame(above, at) {
    const call = this.call[at], line = this.line[at], key = this.lines ? call + ":" + line : call;
    return this.child(above, key, () => {
      const what = this.functions[call], file = what.file ? fileName(what.file) : "";
      const place = file && this.lines && line > 0 ? file + ":" + line : file;
      return this.newRow(above.top ? null : above, what.name + (place ? " · " + place : ""),
        {what, lines: new Map(), fill: this.fill(what.package)});
    });
  },
  wait(above, state) {
    return this.child(above, state, () => this.newRow(above.top ? null : above, WAITS[state][0], {state}));
  },
  wanted(at) { return this.thread < 0 || this.owner[at] === this.thread; },
  // Callees below: processes and threads first if there are several.
  downwards() {
    const top = this.newRow(null, "", {top: true}), made = [], several = new Set(this.threads.map((one) => one.pid)).size > 1;
    const under = (owner) => {
      const thread = this.threads[owner];
      const process = several ? this.child(top, "p" + thread.pid, () => this.newRow(null, thread.process, {})) : top;
      return this.child(process, "t" + owner, () => this.newRow(several ? process : null, thread.name, {thread}));
    };
    for (let i = 0; i < this.n; i++) {
      if (!this.wanted(i)) continue;
      const row = made[i] = this.frame(this.up[i] < 0 ? under(this.owner[i]) : made[this.up[i]], i);
      const self = this.cpu ? this.ran[i] : this.busy[i];
      row.self += self;
      row.lines.set(this.line[i], (row.lines.get(this.line[i]) || 0) + self);
      if (!this.cpu) this.waits[i].forEach(([state, ns]) => this.wait(row, state).self += ns);
    }
    return top;
  },
  // Callers below: what runs, and what is waited for, first.
  upwards() {
    const top = this.newRow(null, "", {top: true});
    const climb = (row, at, ns) => {
      for (let i = at; i >= 0; i = this.up[i]) {
        row = this.frame(row, i);
        row.lines.set(this.line[i], (row.lines.get(this.line[i]) || 0) + ns);
      }
      row.self += ns;  // of the outermost caller: totals are sums of what is below
      return row;
    };
    for (let i = 0; i < this.n; i++) {
      if (!this.wanted(i)) continue;
      const self = this.cpu ? this.ran[i] : this.busy[i];
      if (self > 0) climb(top, i, self);
      if (!this.cpu) this.waits[i].forEach(([state, ns]) => climb(this.wait(top, state), i, ns));
    }
    return top;
  },
  build() {
    this.rows = [];
    const top = this.reversed ? this.upwards() : this.downwards();
    for (let i = this.rows.length - 1; i >= 0; i--) {
      const row = this.rows[i];
      row.total = row.children.reduce((sum, child) => sum + child.total, row.self);
      row.children = row.children.filter((child) => child.total > 0).sort((a, b) => b.total - a.total);
      row.children.forEach((child) => child.waits.forEach((ns, state) => this.addWait(row, state, ns)));
      if (row.state) this.addWait(row, row.state, row.total);
    }
    this.roots = top.children.filter((row) => row.total > 0).sort((a, b) => b.total - a.total);
    this.total = this.roots.reduce((sum, row) => sum + row.total, 0);
    this.graph.use(this.roots, this.total);
    this.tell();
  },
  addWait(row, state, ns) { row.waits.set(state, (row.waits.get(state) || 0) + ns); },

  // ---- words ------------------------------------------------------------------------------------------
  share(ns) { return percent(this.total > 0 ? ns / this.total : 0); },
  place(row) {
    if (!row.what || !row.what.file) return null;
    const line = row.lines.size === 1 ? [...row.lines.keys()][0] : row.what.first_line;
    return row.what.file + (line > 0 ? ":" + line : "");
  },
  waited(row) {
    const list = [...row.waits].filter(([, ns]) => ns > 0).sort((a, b) => b[1] - a[1]);
    return row.state ? [] : list.slice(0, 3).map(([state, ns]) => WAITS[state][0] + " " + time(ns));
  },
  hottest(row) {
    if (!row.lines || row.lines.size < 2 || this.reversed) return null;
    const [line, ns] = [...row.lines].reduce((best, one) => one[1] > best[1] ? one : best);
    return line > 0 && ns > 0 ? "most self time in line " + line + ": " + time(ns) : null;
  },
  tell() {
    const seconds = time(this.total), one = this.thread < 0 ? null : this.threads[this.thread];
    byId("stacks-lead").textContent = (one ? one.name : plural(this.threads.length, "thread")) + ", " +
      plural(STACKS.samples, "stack sample") + ", " + seconds + (this.cpu ? " on a CPU. " : " of wall time. ") +
      (this.reversed ? "A box is below what it calls. " : "A box is below its caller. ") +
      "Click or press Enter to zoom in, Escape to zoom out." +
      (STACKS.left_out > 0 ? " " + plural(STACKS.left_out, "small call is", "small calls are") + " merged." : "");
    this.legend();
  },
  legend() {
    const packages = new Map(), waits = new Map(), add = (sums, key, ns) => sums.set(key, (sums.get(key) || 0) + ns);
    for (let i = 0; i < this.n; i++) {
      if (!this.wanted(i)) continue;
      add(packages, this.functions[this.call[i]].package, this.cpu ? this.ran[i] : this.busy[i]);
      if (!this.cpu) this.waits[i].forEach(([state, ns]) => add(waits, state, ns));
    }
    const key = (name, ns, mark, text) => el("button", {
      type: "button",
      class: "quiet key-of",
      title: "Search for " + text,
      on: {click: () => this.look(text)}
    },
      mark, name + " ", el("b", null, this.share(ns)));
    const swatch = (row) => {
      const made = el("i", {class: "swatch"});
      STACK_FLAME.paint(row, made);
      return made;
    };
    const largest = (sums) => [...sums].filter(([, ns]) => ns > this.total * 0.0005).sort((a, b) => b[1] - a[1]);
    byId("stacks-legend").replaceChildren(
      ...largest(packages).slice(0, LEGEND).map(([name, ns]) => key(name, ns, swatch({fill: this.fill(name)}), name)),
      ...largest(waits).map(([state, ns]) => key(WAITS[state][0], ns, swatch({state}), WAITS[state][0])));
  },
  look(text) {
    const input = byId("stacks-search");
    input.value = input.value === text ? "" : text;
    this.graph.search(input.value);
  },
};

const STACK_FLAME = {
  up: (row) => row.above,
  matches: (row, text) => row.name.toLowerCase().includes(text) ||
    (row.what !== undefined && (row.what.package.toLowerCase() === text || (row.what.file || "").toLowerCase().includes(text))),
  paint(row, element) {
    if (row.state) {
      element.classList.add("wait");
      element.style.setProperty("--tone", WAITS[row.state][1]);
    } else if (row.fill === undefined)
      element.classList.add("frame");
    else
      element.style.background = fillStyle(row.fill);
  },
  words: (row) => [row.name, stacks.place(row), time(row.total), stacks.share(row.total) + " of all",
    stacks.reversed || row.state ? null : "self " + time(row.self), ...stacks.waited(row)].filter(Boolean).join(", "),
  tip: (row) => [stacks.place(row), row.what ? "package " + row.what.package : null,
    time(row.total) + ", " + stacks.share(row.total) + " of all",
    stacks.reversed || row.state ? null : "self " + time(row.self) + ", " + stacks.share(row.self),
    ...stacks.waited(row), stacks.hottest(row)],
};

// ---- controls -----------------------------------------------------------------------------------------
// Two buttons, one of which is pressed: the values false and true of `key`.
function putChoice(id, key, words) {
  const buttons = words.map((text, at) => el("button", {
    type: "button",
    "aria-pressed": String(at === 0),
    on: {
      click: () => {
        stacks[key] = at === 1;
        buttons.forEach((button, one) => button.setAttribute("aria-pressed", String(one === at)));
        stacks.build();
      }
    }
  },
    text));
  byId(id).append(...buttons);
}
function putThreads() {
  const busy = stacks.threads.map(() => 0), select = byId("stacks-thread");
  for (let i = 0; i < stacks.n; i++)
    busy[stacks.owner[i]] += stacks.busy[i] + stacks.waits[i].reduce((sum, [, ns]) => sum + ns, 0);
  select.append(el("option", {value: "-1"}, "All threads"),
    ...stacks.threads.map((thread, at) => [thread, at]).sort((a, b) => busy[b[1]] - busy[a[1]])
      .map(([thread, at]) => el("option", {value: at}, thread.process + " · " + thread.name + " · " + time(busy[at]))));
  select.addEventListener("change", () => {
    stacks.thread = Number(select.value);
    stacks.build();
  });
}
function putStacks() {
  byId("stacks").hidden = !STACKS || STACKS.nodes === 0;
  if (byId("stacks").hidden) return;
  stacks.read();
  stacks.graph = new Flame("stacks", STACK_FLAME);
  putThreads();
  putChoice("stacks-time", "cpu", ["Wall time", "CPU time"]);
  putChoice("stacks-by", "lines", ["Functions", "Lines"]);
  putChoice("stacks-direction", "reversed", ["Callees below", "Callers below"]);
  stacks.build();
}
