// stacks: the flame graph of sampled call stacks, by thread, wall or CPU time, in either direction; and the hot lines.
const STACKS = DATA.stacks;
const STATE_COLORS = {
  runnable: "var(--critical)", gil: "var(--line-1)", lock: "var(--line-3)", disk: "var(--line-4)",
  network: "var(--line-0)", child: "var(--line-2)", pipe: "var(--line-2)", gpu: "var(--good)"
};
const ACTIVE = new Set(["running", "runnable", "gil", "disk"]);  // also of a thread that is not the leading one
const LEGEND = 8;  // packages with their own color
const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);

const stacks = {
  thread: -1,  // all
  time: 0,  // active, wall, CPU
  reversed: 0,
  lines: 0,

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
      this.waits[i] = [];
      for (let left = read.varint(); left > 0; left--) {
        const state = read.varint();
        this.waits[i].push([state, read.varint()]);
      }
    }
    this.colors();
  },
  // The packages with the most self time get a color each.
  colors() {
    const sums = new Map();
    for (let i = 0; i < this.n; i++) {
      const name = this.functions[this.call[i]].package;
      sums.set(name, (sums.get(name) || 0) + this.ran[i]);
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
    return this.child(
      above, "w" + state, () => this.newRow(above.top ? null : above, STACKS.states[state][1], {state}));
  },
  // Of a node: [state, ns] of what is shown of its waits.
  waitsOf(at) {
    if (this.time === 2) return [];
    if (this.time === 1 || this.threads[this.owner[at]].leading) return this.waits[at];
    return this.waits[at].filter(([state]) => ACTIVE.has(STACKS.states[state][0]));
  },
  wanted(at) { return this.thread < 0 || this.owner[at] === this.thread; },
  // Callees below: processes and threads first if there are several.
  downwards() {
    const top = this.newRow(null, "", {top: true}), made = [], 
          several = new Set(this.threads.map((one) => one.number)).size > 1;
    const under = (owner) => {
      const thread = this.threads[owner];
      const process = several ? this.child(top, "p" + thread.number, () => this.newRow(null, thread.process, {})) : top;
      return this.child(process, "t" + owner, () => this.newRow(several ? process : null, thread.name, {thread}));
    };
    for (let i = 0; i < this.n; i++) {
      if (!this.wanted(i)) continue;
      const row = made[i] = this.frame(this.up[i] < 0 ? under(this.owner[i]) : made[this.up[i]], i);
      let self = this.ran[i];
      row.self += self;
      this.waitsOf(i).forEach(([state, ns]) => {
        this.wait(row, state).self += ns;
        self += ns;
      });
      row.lines.set(this.line[i], (row.lines.get(this.line[i]) || 0) + self);
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
      if (this.ran[i] > 0) climb(top, i, this.ran[i]);
      this.waitsOf(i).forEach(([state, ns]) => climb(this.wait(top, state), i, ns));
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
      if (row.state !== undefined) this.addWait(row, row.state, row.total);
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
    return row.state !== undefined ? [] : list.slice(0, 3).map(([state, ns]) => STACKS.states[state][1] + " " + time(ns));
  },
  hottest(row) {
    if (!row.lines || row.lines.size < 2 || this.reversed) return null;
    const [line, ns] = [...row.lines].reduce((best, one) => one[1] > best[1] ? one : best);
    return line > 0 && ns > 0 ? "most self time in line " + line + ": " + time(ns) : null;
  },
  tell() {
    const seconds = time(this.total), one = this.thread < 0 ? null : this.threads[this.thread];
    byId("stacks-lead").textContent = (one ? one.name : plural(this.threads.length, "thread")) + ", " +
      plural(STACKS.samples, "stack sample") + ", " + seconds + TIMES[this.time] + ". " +
      (this.reversed ? "A box is below what it calls. " : "A box is below its caller. ") +
      "Click or press Enter to zoom in, Escape to zoom out." +
      (STACKS.smallest > 0 ? " Calls of less than " + time(STACKS.smallest) + " are merged." : "");
    this.legend();
  },
  legend() {
    const packages = new Map(), waits = new Map(), add = (sums, key, ns) => sums.set(key, (sums.get(key) || 0) + ns);
    for (let i = 0; i < this.n; i++) {
      if (!this.wanted(i)) continue;
      add(packages, this.functions[this.call[i]].package, this.ran[i]);
      this.waitsOf(i).forEach(([state, ns]) => add(waits, state, ns));
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
      ...largest(waits).map(([state, ns]) => key(STACKS.states[state][1], ns, swatch({state}), STACKS.states[state][1])));
  },
  look(text, always) {
    const input = byId("stacks-search");
    input.value = input.value === text && !always ? "" : text;
    this.graph.search(input.value);
  },
};

const TIMES = [" of active time", " of wall time", " on a CPU"];
const STACK_FLAME = {
  up: (row) => row.above,
  matches: (row, text) => row.name.toLowerCase().includes(text) ||
    (row.what !== undefined && (row.what.package.toLowerCase() === text || (row.what.file || "").toLowerCase().includes(text))),
  paint(row, element) {
    if (row.state !== undefined) {
      element.classList.add("wait");
      element.style.setProperty("--tone", STATE_COLORS[STACKS.states[row.state][0]] || "var(--line-5)");
    } else if (row.fill === undefined)
      element.classList.add("frame");
    else
      element.style.background = fillStyle(row.fill);
  },
  words: (row) => [row.name, stacks.place(row), time(row.total), stacks.share(row.total) + " of all",
    stacks.reversed || row.state !== undefined ? null : "self " + time(row.self), ...stacks.waited(row)].filter(Boolean).join(", "),
  tip: (row) => [stacks.place(row), row.what ? "package " + row.what.package : null,
    time(row.total) + ", " + stacks.share(row.total) + " of all",
    stacks.reversed || row.state !== undefined ? null : "self " + time(row.self) + ", " + stacks.share(row.self),
    ...stacks.waited(row), stacks.hottest(row)],
};

// ---- controls -----------------------------------------------------------------------------------------
// Buttons, one of which is pressed: its number is the value of `key`.
function putChoice(id, key, words) {
  const press = (at) => {
    stacks[key] = at;
    buttons.forEach((button, one) => button.setAttribute("aria-pressed", String(one === at)));
    stacks.build();
  };
  const buttons = words.map(([text, title], at) => el(
    "button", {type: "button", title, "aria-pressed": String(at === 0), on: {click: () => press(at)}}, text));
  byId(id).append(...buttons);
}
function putThreads() {
  const busy = stacks.threads.map(() => 0), select = byId("stacks-thread");
  for (let i = 0; i < stacks.n; i++)
    busy[stacks.owner[i]] += stacks.ran[i] + stacks.waits[i].reduce((sum, [, ns]) => sum + ns, 0);
  select.append(el("option", {value: "-1"}, "All threads"),
    ...stacks.threads.map((thread, at) => [thread, at]).sort((a, b) => busy[b[1]] - busy[a[1]])
      .map(([thread, at]) => el("option", {value: at}, thread.process + " · " + thread.name + " · " + time(busy[at]))));
  select.addEventListener("change", () => {
    stacks.thread = Number(select.value);
    stacks.build();
  });
}
// ---- hot lines -------------------------------------------------------------------------------------------
const HOT_LINES = 15;
const STATE_WORDS = STACKS ? new Map(STACKS.states) : new Map();
function showLine(row) {
  const buttons = byId("stacks-by").children;
  if (!stacks.lines) buttons[1].click();
  stacks.look(fileName(row.file) + ":" + row.line, true);
  byId("stacks").scrollIntoView();
}
// A C++ function without the type of its result, template arguments and parameters, which hide its name.
function shortName(name) {
  const apart = name.indexOf("(") > 0 ? name.replace(/\(anonymous namespace\)/g, "{}") : "";
  if (!apart || name[0] === "<" || /operator[^\w]/.test(apart)) return name;
  let depth = 0, out = "";
  for (const one of apart.replace(/->/g, "")) {
    if ("(<".includes(one)) depth++;
    if (depth === 0) out += one;
    if (")>".includes(one)) depth--;
  }
  out = out.replace(/( const| &+| \[clone.*)*$/, "").replace(/\{\}/g, "(anonymous namespace)");
  return out.replace(/\(anonymous namespace\)/g, "\0").split(" ").pop().replace(/\0/g, "(anonymous namespace)") || name;
}
function lineRow(row, code, coded) {
  const bar = el("i", {"aria-hidden": "true"}), place = row.file ? fileName(row.file) + ":" + row.line : "";
  bar.style.width = "calc((100% - 12px) * " + Math.min(1, row.share || 0) + ")";
  return el("tr", null,
    el("th", {scope: "row"},
      row.file ? el("button", {type: "button", class: "link", title: row.file, on: {click: () => showLine(row)}}, place) :
                 "(other lines)"),
    coded ? el("td", {class: "code"}, code ? el("code", null, code) : null) : null,
    el("td", {class: "text"}, row.function || "",
      row.inner && row.inner_ns >= row.own_ns / 2 ?
        el("span", {class: "muted", title: row.inner}, " → " + shortName(row.inner)) : null),
    el("td", {class: "number share"}, bar, el("span", null, known(row.share) ? percent(row.share) : na())),
    el("td", {class: "number"}, time(known(row.own_ns) ? row.own_ns : row.self)),
    el("td", null, STATE_WORDS.get(row.state) || row.state || ""));
}
function putHotLines() {
  const rows = DATA.lines ? rowsOf(DATA.lines).slice(0, HOT_LINES) : [], code = STACKS.code;
  if (rows.length === 0) return;
  const coded = code.some((text) => text !== null);
  const heads = [["Line"], coded ? ["Code"] : null, ["Function"], ["Share of active time", "number"], ["Time", "number"],
    ["Mostly"]];
  byId("hot-lines").append(el("h3", null, "Hot lines"),
    el("div", {class: "scroll hot", tabindex: "0", role: "region", "aria-label": "Table: hot lines"},
      el("table", null, el("caption", {class: "sr"}, "Hot lines"),
        el("thead", null, el("tr", null, heads.filter(Boolean).map(
          ([text, kind]) => el("th", {scope: "col", class: kind || null}, el("span", null, text))))),
        el("tbody", null, rows.map((row, at) => lineRow(row, code[at], coded))))));
}
function putStacks() {
  byId("stacks").hidden = !STACKS || STACKS.nodes === 0;
  if (byId("stacks").hidden) return;
  stacks.read();
  stacks.graph = new Flame("stacks", STACK_FLAME);
  putThreads();
  putChoice("stacks-time", "time", [
    ["Active", "Time of the leading thread; of other threads, time that they do not spend waiting for work"],
    ["Wall", "All time of all threads"], ["CPU", "Time on a CPU"]
  ]);
  putChoice("stacks-by", "lines", [["Functions", "Merge the lines of a function"], ["Lines", "A box for each line"]]);
  putChoice("stacks-direction", "reversed",
    [["Callees below", "From the outermost call inwards"], ["Callers below", "From the innermost call outwards"]]);
  stacks.build();
  putHotLines();
}
