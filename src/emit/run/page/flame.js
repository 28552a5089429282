// flame: a tree as boxes whose width is time, with search, zoom and keys; a box is below its caller. And that of spans.
const FLAME_ROW = 21, FLAME_LEAST = 0.0006;  // of the width: narrower boxes are not drawn
const SPANS_TOTAL = SPANS.reduce((sum, row) => row.parent === null ? sum + row.total : sum, 0);

// `id` is that of its elements: id-graph, id-search, id-hits, id-path, id-all. Rows have name, total, children and a
// parent. `how`: words(row) for screen readers, tip(row) lines of the tooltip, matches(row, text), paint(row, element),
// up(row) the parent, whole: what the graph without zoom is called.
class Flame {
  constructor(id, how) {
    this.id = id;
    this.how = how;
    this.zoomed = null;
    this.focus = 0;
    this.wanted = "";
    this.shown = [];
    this.roots = [];
    this.rootTotal = 0;
    this.width = 0;  // until it is laid out for the first time
    this.graph = byId(id + "-graph");
    this.listen();
  }
  part(name) { return byId(this.id + "-" + name); }
  use(roots, total) {
    this.roots = roots;
    this.rootTotal = total;
    this.zoomed = null;
    this.focus = 0;
    if (this.width > 0) this.draw();
  }

  // Boxes to draw: [row, left, width, depth, above], shares of the whole.
  layOut() {
    const made = [], chain = [];
    for (let row = this.zoomed; row; row = this.how.up(row)) chain.unshift(row);
    const put = (...first) => {
      const open = [first];  // not by recursion: stacks may be deeper than a browser's own
      while (open.length > 0) {
        const [row, left, share, depth] = open.pop(), children = [];
        if (share < FLAME_LEAST) continue;
        made.push([row, left, share, depth, false]);
        let at = left;
        row.children.forEach((child) => {
          const part = row.total > 0 ? child.total / row.total * share : 0;
          children.push([child, at, part, depth + 1]);
          at += part;
        });
        while (children.length > 0) open.push(children.pop());
      }
    };
    if (this.zoomed) {
      chain.slice(0, -1).forEach((row, depth) => made.push([row, 0, 1, depth, true]));
      put(this.zoomed, 0, 1, chain.length - 1);
    } else {
      let at = 0;
      this.roots.forEach((row) => {
        const share = this.rootTotal > 0 ? row.total / this.rootTotal : 0;
        put(row, at, share, 0);
        at += share;
      });
    }
    return made;
  }
  isHit(row) { return this.wanted !== "" && this.how.matches(row, this.wanted); }
  button([row, left, share, depth, above], at, width) {
    const wide = share * width,
          made = el("button", {
            type: "button",
            role: "treeitem",
            tabindex: at === this.focus ? "0" : "-1",
            "aria-label": this.how.words(row),
            "aria-level": depth + 1,
            "aria-expanded": row.children.length > 0 ? "true" : null,
            class:
              [wide < 16 ? "thin" : "", above ? "above" : "", this.isHit(row) ? "hit" : ""].join(" ").trim() || null,
            "data-at": at
          },
            wide >= 16 ? row.name : "");
    made.style.left = left * 100 + "%";
    made.style.width = "calc(" + share * 100 + "% - " + (wide > 3 ? 1 : 0) + "px)";
    made.style.top = depth * FLAME_ROW + 1 + "px";
    this.how.paint(row, made);
    return made;
  }
  draw() {
    const width = this.graph.clientWidth || 1200;
    this.shown = this.layOut();
    this.focus = Math.min(this.focus, Math.max(0, this.shown.length - 1));
    const deepest = this.shown.reduce((most, box) => Math.max(most, box[3]), 0),
          height = (deepest + 1) * FLAME_ROW + 2;
    this.graph.replaceChildren(...this.shown.map((box, at) => this.button(box, at, width)));
    this.graph.style.height = Math.min(height, 520) + "px";
    this.graph.classList.toggle("searching", this.wanted !== "");
    this.part("all").disabled = !this.zoomed;
    this.part("path").replaceChildren(
      ...(this.zoomed ? [el("span", {class: "muted"}, "In " + this.zoomed.name)] : []));
    this.tellHits();
  }
  // Matches nested in other matches are not counted twice.
  tellHits() {
    let sum = 0, n = 0;
    const open = this.wanted === "" ? [] : this.zoomed ? [this.zoomed] : this.roots.slice();
    while (open.length > 0) {
      const row = open.pop();
      if (this.isHit(row)) {
        sum += row.total;
        n++;
      } else
        row.children.forEach((child) => open.push(child));
    }
    const whole = this.zoomed ? this.zoomed.total : this.rootTotal;
    this.part("hits").textContent = this.wanted === "" ? "" :
      n === 0                                          ? "no hits" :
                plural(n, "hit") + ", " + time(sum) + ", " + percent(whole > 0 ? sum / whole : 0);
  }
  search(text) {
    this.wanted = text.trim().toLowerCase();
    this.draw();
  }
  zoom(row) {
    this.zoomed = row;
    this.draw();
    this.focus = Math.max(0, this.shown.findIndex((box) => box[0] === row));
    this.focusOn(this.focus);
  }
  focusOn(at) {
    const boxes = this.graph.children;
    if (!boxes[at]) return;
    if (boxes[this.focus]) boxes[this.focus].tabIndex = -1;
    this.focus = at;
    boxes[at].tabIndex = 0;
    boxes[at].focus();
  }
  onKey(event) {
    const [row, , , depth] = this.shown[this.focus] || [];
    if (!row) return;
    const beside = (by) => {
      for (let at = this.focus + by; this.shown[at]; at += by)
        if (this.shown[at][3] === depth) return at;
      return -1;
    };
    const acts = {
      ArrowUp: () => this.shown.findIndex((box) => box[0] === this.how.up(row)),
      ArrowDown: () => this.shown.findIndex((box) => row.children.includes(box[0])),
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => 0,
      End: () => this.shown.length - 1,
    };
    if (event.key === "Escape")
      this.zoom(null);
    else if (acts[event.key]) {
      const at = acts[event.key]();
      if (at >= 0) this.focusOn(at);
    } else
      return;
    event.preventDefault();
  }
  rowOf(event) {
    const button = event.target.closest("button");
    return button && this.shown[Number(button.dataset.at)][0];
  }
  listen() {
    const graph = this.graph, text = this.part("search");
    graph.addEventListener("click", (event) => {
      const row = this.rowOf(event);
      if (!row) return;
      tip.hide();
      this.zoom(row === this.zoomed ? null : row);
    });
    graph.addEventListener("pointermove", (event) => {
      const row = this.rowOf(event);
      if (row)
        tip.show(event.clientX, event.clientY, row.name, this.how.tip(row));
      else
        tip.hide();
    });
    graph.addEventListener("pointerleave", () => tip.hide());
    graph.addEventListener("keydown", (event) => this.onKey(event));
    text.addEventListener("input", () => this.search(text.value));
    this.part("all").addEventListener("click", () => this.zoom(null));
    new ResizeObserver(() => {
      if (graph.clientWidth === this.width) return;
      this.width = graph.clientWidth;
      this.draw();
    }).observe(graph);
  }
}

// ---- spans ----------------------------------------------------------------------------------------
const SPAN_FLAME = {
  up: (row) => row.parent === null ? null : SPANS[row.parent],
  matches: (row, text) => row.name.toLowerCase().includes(text),
  paint: (row, element) => element.style.background = fillStyle(fillOf(row.name)),
  words(row) {
    const kind = ["span", "others"].includes(row.kind) ? "" : " (" + row.kind + ")";
    return row.name + kind + ", " + time(row.total) + ", " + percent(row.share || 0) + " of all, self " +
      time(row.self) + ", " + plural(row.calls, "call");
  },
  tip: (row) => [time(row.total) + ", " + percent(row.share || 0) + " of all", "self " + time(row.self),
    plural(row.calls, "call") + ", p50 " + (known(row.p50) ? time(row.p50) : "n/a")],
};
function putFlame() {
  const roots = SPANS.filter((row) => row.parent === null);
  byId("flame").hidden = roots.length === 0 || SPANS_TOTAL <= 0;
  if (byId("flame").hidden) return;
  byId("flame-lead").textContent = "All threads: " + time(SPANS_TOTAL) +
    " in spans. The width of a box is its time; callees are below. " +
    "Click or press Enter to zoom in, Escape to zoom out." +
    (DATA.spans.left_out > 0 ?
        " " + plural(DATA.spans.left_out, "small row is", "small rows are") + " omitted from this page." :
        "");
  new Flame("flame", SPAN_FLAME).use(roots, SPANS_TOTAL);
}
