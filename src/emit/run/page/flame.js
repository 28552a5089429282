// flame: the span tree as boxes whose width is time; a box is below its caller.
const FLAME_ROW = 21;
const flame = {
  zoomed: null,
  focus: 0,
  wanted: "",
  rootTotal: SPANS.reduce((sum, row) => row.parent === null ? sum + row.total : sum, 0),
  roots: SPANS.filter((row) => row.parent === null),

  // Boxes to draw: [row, left, width, depth, above], shares of the whole.
  layOut() {
    const made = [], chain = [];
    for (let row = this.zoomed; row; row = row.parent === null ? null : SPANS[row.parent]) chain.unshift(row);
    const put = (row, left, share, depth) => {
      if (share < 0.0006) return;
      made.push([row, left, share, depth, false]);
      let at = left;
      row.children.forEach((child) => {
        const part = row.total > 0 ? child.total / row.total * share : 0;
        put(child, at, part, depth + 1);
        at += part;
      });
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
  },
  said(row) {
    const kind = ["span", "others"].includes(row.kind) ? "" : " (" + row.kind + ")";
    return row.name + kind + ", " + time(row.total) + ", " + percent(row.share || 0) + " of all, self " +
      time(row.self) + ", " + plural(row.calls, "call");
  },
  isHit(row) { return this.wanted !== "" && row.name.toLowerCase().includes(this.wanted); },
  button([row, left, share, depth, above], at, width) {
    const wide = share * width,
          made = el("button", {
            type: "button",
            role: "treeitem",
            tabindex: at === this.focus ? "0" : "-1",
            "aria-label": this.said(row),
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
    made.style.background = fillStyle(fillOf(row.name));
    return made;
  },
  draw() {
    const graph = byId("flame-graph"), width = graph.clientWidth || 1200;
    this.shown = this.layOut();
    this.focus = Math.min(this.focus, Math.max(0, this.shown.length - 1));
    const deepest = this.shown.reduce((most, box) => Math.max(most, box[3]), 0),
          height = (deepest + 1) * FLAME_ROW + 2;
    graph.replaceChildren(...this.shown.map((box, at) => this.button(box, at, width)));
    graph.style.height = Math.min(height, 520) + "px";
    graph.classList.toggle("searching", this.wanted !== "");
    byId("flame-all").disabled = !this.zoomed;
    byId("flame-path")
      .replaceChildren(...(this.zoomed ? [el("span", {class: "muted"}, "In " + this.zoomed.name)] : []));
    this.tellHits();
  },
  // Matches nested in other matches are not counted twice.
  tellHits() {
    let sum = 0, n = 0;
    const walk = (row) => {
      if (this.isHit(row)) {
        sum += row.total;
        n++;
        return;
      }
      row.children.forEach(walk);
    };
    if (this.wanted) (this.zoomed ? [this.zoomed] : this.roots).forEach(walk);
    const whole = this.zoomed ? this.zoomed.total : this.rootTotal;
    byId("flame-hits").textContent = this.wanted === "" ? "" :
      n === 0                                           ? "no hits" :
                plural(n, "hit") + ", " + time(sum) + ", " + percent(whole > 0 ? sum / whole : 0);
  },
  zoom(row) {
    this.zoomed = row;
    this.draw();
    this.focus = Math.max(0, this.shown.findIndex((box) => box[0] === row));
    this.focusOn(this.focus);
  },
  focusOn(at) {
    const graph = byId("flame-graph");
    if (!graph.children[at]) return;
    if (graph.children[this.focus]) graph.children[this.focus].tabIndex = -1;
    this.focus = at;
    graph.children[at].tabIndex = 0;
    graph.children[at].focus();
  },
  onKey(event) {
    const [row, , , depth] = this.shown[this.focus] || [];
    if (!row) return;
    const beside = (by) => {
      for (let at = this.focus + by; this.shown[at]; at += by)
        if (this.shown[at][3] === depth) return at;
      return -1;
    };
    const acts = {
      ArrowUp: () => this.shown.findIndex((box) => row.parent !== null && box[0] === SPANS[row.parent]),
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
  },
};
function putFlame() {
  byId("flame").hidden = flame.roots.length === 0 || flame.rootTotal <= 0;
  if (byId("flame").hidden) return;
  const graph = byId("flame-graph"), text = byId("flame-search"), rowOf = (event) => {
    const button = event.target.closest("button");
    return button && flame.shown[Number(button.dataset.at)][0];
  };
  byId("flame-lead").textContent = "All threads: " + time(flame.rootTotal) +
    " in spans. The width of a box is its time; callees are below. " +
    "Click or press Enter to zoom in, Escape to zoom out." +
    (DATA.spans.left_out > 0 ?
        " " + plural(DATA.spans.left_out, "small row is", "small rows are") + " omitted from this page." :
        "");
  graph.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (row) {
      tip.hide();
      flame.zoom(row === flame.zoomed ? null : row);
    }
  });
  graph.addEventListener("pointermove", (event) => {
    const row = rowOf(event);
    if (row)
      tip.show(event.clientX, event.clientY, row.name, [
        time(row.total) + ", " + percent(row.share || 0) + " of all", "self " + time(row.self),
        plural(row.calls, "call") + ", p50 " + (known(row.p50) ? time(row.p50) : "n/a")
      ]);
    else
      tip.hide();
  });
  graph.addEventListener("pointerleave", () => tip.hide());
  graph.addEventListener("keydown", (event) => flame.onKey(event));
  text.addEventListener("input", () => {
    flame.wanted = text.value.trim().toLowerCase();
    flame.draw();
  });
  byId("flame-all").addEventListener("click", () => flame.zoom(null));
  let width = 0;
  new ResizeObserver(() => {
    if (graph.clientWidth !== width) {
      width = graph.clientWidth;
      flame.draw();
    }
  }).observe(graph);
}
