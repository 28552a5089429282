// hands: mouse, wheel and keys on the timeline; search; the selected box; the same data as a table.
// Frames, innermost first.
function pickedStack(at, instant) {
  const lane = boxes.laneOf(at);
  const frames = lane.sampled ? boxes.stackAt(lane, instant === undefined ? middleOf(at) : instant) : [];
  return frames.length > 0 &&
    el("ol", {class: "picked-stack", "aria-label": "Stack, innermost function first"},
      frames.map(([text, line]) => el("li", null, text + (line > 0 ? ":" + line : ""))));
}
const middleOf = (at) => (boxes.start[at] + boxes.end[at]) / 2;
function putPicked(at, quiet, instant) {
  timeline.picked = at;
  const place = byId("picked");
  timeline.draw();
  if (at < 0) {
    place.replaceChildren();
    return;
  }
  const lane = boxes.laneOf(at);
  place.replaceChildren(el("strong", null, boxes.nameOf(at)),
    ...boxes.linesOf(at).map((line) => el("span", null, line)), el("span", {class: "muted"}, lane.name),
    el("button", {type: "button", on: {click: () => zoomToPicked()}}, "Zoom to it"),
    ...[pickedStack(at, instant)].filter(Boolean));
  if (!quiet) timeline.showRow(at);
}
function zoomToPicked() {
  const at = timeline.picked, lasts = boxes.end[at] - boxes.start[at];
  timeline.look(boxes.start[at] - lasts * 0.15, boxes.end[at] + lasts * 0.15);
  timeline.showRow(at);
}
// Scrolls and zooms only as far as necessary to show the box.
function reveal(at) {
  const span = timeline.to - timeline.from, lasts = boxes.end[at] - boxes.start[at],
        middle = boxes.start[at] + lasts / 2;
  const wanted = lasts > span ? lasts * 1.3 : lasts < span / 400 ? Math.max(lasts * 60, boxes.last * 1e-8) : span;
  const inside = boxes.start[at] >= timeline.from && boxes.end[at] <= timeline.to && wanted === span;
  if (!inside) timeline.look(middle - wanted / 2, middle + wanted / 2);
  putPicked(at);
}

// ---- keys ---------------------------------------------------------------------------------------
function pickInTheMiddle() {
  const middle = (timeline.from + timeline.to) / 2, top = byId("lanes").scrollTop;
  let found = -1, nearest = Infinity;
  boxes.rows.forEach((row) => {
    const lane = boxes.lanes[row.lane], y = lane.y + LABEL + row.depth * ROW - top;
    if (row.depth >= lane.levels || y < RULER || y > timeline.seen) return;
    const at = boxes.at(row, middle, (timeline.to - timeline.from) / 2);
    if (at < 0) return;
    const away = Math.max(0, boxes.start[at] - middle, middle - boxes.end[at]);
    if (away < nearest || (away === nearest && found >= 0 && boxes.laneOf(at) === boxes.laneOf(found)))
      [found, nearest] = [at, away];
  });
  return found;
}
const scrollLanes = (by) => {
  byId("lanes").scrollTop += by;
};
const KEYS = {
  ArrowLeft: () => timeline.move(-0.15),
  ArrowRight: () => timeline.move(0.15),
  a: () => timeline.move(-0.15),
  d: () => timeline.move(0.15),
  w: () => timeline.zoom(0.7),
  s: () => timeline.zoom(1 / 0.7),
  "+": () => timeline.zoom(0.7),
  "=": () => timeline.zoom(0.7),
  "-": () => timeline.zoom(1 / 0.7),
  ArrowUp: () => scrollLanes(-2 * ROW),
  ArrowDown: () => scrollLanes(2 * ROW),
  0: () => timeline.look(0, boxes.last),
  Home: () => timeline.look(0, timeline.to - timeline.from),
  End: () => timeline.look(boxes.last - (timeline.to - timeline.from), boxes.last),
  n: () => search.step(1),
  p: () => search.step(-1),
  Escape: () => {
    timeline.finding = null;
    putPicked(-1);
  },
  Enter: () => {
    if (timeline.picked >= 0)
      zoomToPicked();
    else {
      const at = pickInTheMiddle();
      if (at >= 0) putPicked(at);
    }
  },
};
const STEPS = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down"
};
function stepToNeighbour(direction) {
  const from = timeline.picked, at = from < 0 ? pickInTheMiddle() : boxes.neighbour(from, direction);
  if (at >= 0) reveal(at);
}
function onKey(event) {
  if (event.ctrlKey || event.metaKey) return;
  if (event.altKey) {
    if (!STEPS[event.key]) return;
    stepToNeighbour(STEPS[event.key]);
  } else {
    const act = KEYS[event.key] || KEYS[event.key.toLowerCase()];
    if (!act) return;
    act();
  }
  event.preventDefault();
}

// ---- mouse --------------------------------------------------------------------------------------
function putMouse() {
  const holder = byId("lanes"), place = (event) => {
    const box = holder.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = null;
  holder.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = place(event);
    if (x > holder.clientWidth) return;
    drag = {
      x,
      y,
      from: timeline.from,
      to: timeline.to,
      top: holder.scrollTop,
      moved: false,
      selects: event.shiftKey || y < RULER
    };
    try {
      holder.setPointerCapture(event.pointerId);
    } catch (error) { drag.loose = true; }
  });
  holder.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    timeline.cursor = timeline.at(x);
    if (!drag) {
      hover(event, x, y);
      timeline.draw();
      return;
    }
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3) drag.moved = true;
    if (!drag.moved) return;
    tip.hide();
    if (drag.selects) {
      timeline.selecting = [timeline.at(drag.x), timeline.at(x)];
      timeline.draw();
    } else {
      const by =
        Math.max(-drag.from, Math.min(boxes.last - drag.to, (drag.x - x) / timeline.width * (drag.to - drag.from)));
      holder.classList.add("dragging");
      holder.scrollTop = drag.top + drag.y - y;
      timeline.look(drag.from + by, drag.to + by);
    }
  });
  const release = (event) => {
    if (!drag) return;
    const [x, y] = place(event), was = drag;
    drag = null;
    holder.classList.remove("dragging");
    if (timeline.selecting) {
      const [a, b] = timeline.selecting;
      timeline.selecting = null;
      timeline.look(Math.min(a, b), Math.max(a, b));
    } else if (!was.moved && event.type === "pointerup")
      click(x, y);
  };
  holder.addEventListener("pointerup", release);
  holder.addEventListener("pointercancel", release);
  holder.addEventListener("pointerleave", () => {
    tip.hide();
    timeline.cursor = null;
    timeline.draw();
  });
  holder.addEventListener("dblclick", (event) => {
    const at = timeline.boxAt(...place(event));
    if (at >= 0) {
      putPicked(at, true);
      zoomToPicked();
    }
  });
  holder.addEventListener("scroll", () => timeline.draw());
  holder.addEventListener("wheel", (event) => onWheel(event, place(event)[0]), {passive: false});
}
function hover(event, x, y) {
  const at = timeline.boxAt(x, y);
  if (at < 0)
    tip.hide();
  else
    tip.show(event.clientX, event.clientY, boxes.nameOf(at), boxes.linesOf(at));
}
function click(x, y) {
  const found = timeline.rowAt(y), at = timeline.boxAt(x, y);
  if (found && !found.row)
    timeline.fold(found.lane);
  else
    putPicked(at, true, timeline.at(x));
}
// Scrolling the page must not be captured by an element under the mouse: the wheel zooms only if requested.
function onWheel(event, x) {
  const zooms = event.ctrlKey || event.metaKey || (document.activeElement === byId("lanes") && !event.shiftKey);
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
  if (sideways)
    timeline.move(sideways / timeline.width);
  else if (zooms)
    timeline.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), x);
  else
    return;
  tip.hide();
  event.preventDefault();
}
function putOverviewMouse() {
  const canvas = byId("overview");
  let from = null;
  const at = (event) => (event.clientX - canvas.getBoundingClientRect().left) / timeline.width * boxes.last;
  canvas.addEventListener("pointerdown", (event) => {
    from = at(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from !== null && Math.abs(at(event) - from) > boxes.last * 0.004)
      timeline.look(Math.min(from, at(event)), Math.max(from, at(event)));
  });
  canvas.addEventListener("pointerup", (event) => {
    const span = timeline.to - timeline.from, now = at(event);
    if (from !== null && Math.abs(now - from) <= boxes.last * 0.004) timeline.look(now - span / 2, now + span / 2);
    from = null;
  });
}

// ---- search -------------------------------------------------------------------------------------
const search = {
  hits: [],
  at: -1,
  look(text) {
    const wanted = text.trim().toLowerCase(), output = byId("timeline-hits");
    this.hits = [];
    this.at = -1;
    timeline.wanted = null;
    if (wanted) {
      const names = boxes.names.map((name) => name.toLowerCase().includes(wanted));
      timeline.wanted = names;
      for (let at = 0; at < boxes.n; at++)
        if (names[boxes.name[at]]) this.hits.push(at);
      this.hits.sort((a, b) => boxes.start[a] - boxes.start[b]);
      this.calls = this.hits.reduce((sum, at) => sum + boxes.calls[at], 0);
    }
    output.textContent = wanted ? this.said() : "";
    timeline.draw();
  },
  said() {
    if (this.hits.length === 0) return "no hits";
    const all = this.calls > this.hits.length ?
      exactly(this.hits.length) + " boxes, " + exactly(this.calls) + " spans" :
      exactly(this.hits.length);
    return this.at < 0 ?
      plural(this.hits.length, "hit") + (this.calls > this.hits.length ? ", " + exactly(this.calls) + " spans" : "") :
      "hit " + exactly(this.at + 1) + " of " + all;
  },
  step(by) {
    const n = this.hits.length;
    if (n === 0) return;
    this.at = this.at < 0 ? (by > 0 ? 0 : n - 1) : (this.at + by + n) % n;
    reveal(this.hits[this.at]);
    byId("timeline-hits").textContent = this.said();
  },
};

// ---- the same data as a table -------------------------------------------------------------------
function boxesInView() {
  const found = [];
  boxes.rows.forEach((row) => {
    if (DATA.timeline.spans > 0 && boxes.lanes[row.lane].sampled) return; // the table is of spans where there are any
    let at = Math.max(row.first, lastBefore(boxes.start, row.first, row.end, timeline.from));
    for (; at < row.end && boxes.start[at] < timeline.to; at++)
      if (boxes.end[at] > timeline.from) found.push(at);
  });
  return found;
}
function timelineRow(at) {
  const number = (text) => el("td", {class: "number"}, text), lasts = Math.max(1, boxes.end[at] - boxes.start[at]);
  const link = el("button", {type: "button", class: "link", on: {click: () => reveal(at)}}, boxes.nameOf(at));
  return el("tr", null, el("th", {scope: "row"}, link), el("td", {class: "text"}, boxes.laneOf(at).name),
    number(String(boxes.rows[boxes.row[at]].depth)), number(instant(boxes.start[at], lasts / 10)),
    number(time(boxes.busyOf(at))), number(exactly(boxes.calls[at])));
}
function putTimelineTable() {
  if (!byId("timeline-table").open) return;
  const found = boxesInView().sort((a, b) => boxes.busyOf(b) - boxes.busyOf(a)), some = found.slice(0, 100);
  const rows = some.sort((a, b) => boxes.start[a] - boxes.start[b]).map(timelineRow);
  const part = found.length > some.length ? "The " + some.length + " longest of " : "";
  const told = part + plural(found.length, "box", "boxes");
  const head = (name, at) => el("th", {scope: "col", class: at > 1 ? "number" : null}, el("span", null, name));
  const heads = ["Span", "Thread or track", "Level", "Start", "Time", "Spans"].map(head);
  const caption = el("caption", {class: "sr"}, "Spans in the part of the run that the timeline shows");
  byId("timeline-table-body")
    .replaceChildren(el("p", {class: "small muted more"}, told + " in view, in order of time."),
      el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Boxes in view"},
        el("table", null, caption, el("thead", null, el("tr", null, heads)), el("tbody", null, rows))));
}

// ---- setup --------------------------------------------------------------------------------------
function putTimelineLead() {
  const line = DATA.timeline, parts = [], lanes = boxes.lanes.length - boxes.sampled;
  if (line.spans > 0)
    parts.push(plural(line.spans, "span") + " of " + plural(lanes, "thread or track", "threads and tracks") + ".");
  if (line.merged > 0)
    parts.push(exactly(line.merged) + " of them are too short to display and are merged into " +
      exactly(boxes.calls.filter((n, at) => n > 1 && !boxes.laneOf(at).sampled).length) + " boxes that keep their number and total time.");
  if (line.left_out > 0)
    parts.push(exactly(line.left_out) + " more are omitted: nested too deeply or on too many threads.");
  if (boxes.sampled > 0)
    parts.push(plural(boxes.sampled, "thread") + " by stack samples: the state, and the innermost function of own code. " +
      "Select a box to see the stack.");
  byId("timeline-lead").textContent =
    parts.length > 0 ? parts.join(" ") : "No spans were recorded in this run; the charts show the sampled metrics.";
}
function putTimeline() {
  const holder = byId("lanes"), text = byId("timeline-search");
  if (boxes.lanes.length > 24)
    boxes.lanes.forEach((lane, at) => {
      lane.folded = at > 7;
    });
  ["overview", "timeline-table", "timeline-search", "timeline-next", "timeline-previous"].forEach((id) => {
    byId(id).hidden = boxes.n === 0;
  });
  timeline.theme();
  themed.push(() => {
    timeline.theme();
    timeline.draw();
  });
  under.put();
  if (boxes.n === 0 && under.tracks.length === 0) {
    byId("timeline").hidden = true;
    return;
  }
  putTimelineLead();
  const tell = () => {
    byId("timeline-range").textContent = instant(timeline.from, (timeline.to - timeline.from) / 10) + " – " +
      instant(timeline.to, (timeline.to - timeline.from) / 10) + " (" + time(timeline.to - timeline.from) + ")";
    holder.setAttribute("aria-label",
      "Timeline, from " + time(timeline.from) + " to " + time(timeline.to) + " of " + time(boxes.last) + ", " +
        plural(boxes.lanes.length, "thread or track", "threads and tracks"));
  };
  timeline.changed.push(tell, onceAFrame(putTimelineTable));
  byId("timeline-table").addEventListener("toggle", putTimelineTable);
  holder.addEventListener("keydown", onKey);
  putMouse();
  putOverviewMouse();
  text.addEventListener("input", () => search.look(text.value));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      search.step(event.shiftKey ? -1 : 1);
      event.preventDefault();
    }
  });
  byId("timeline-next").addEventListener("click", () => search.step(1));
  byId("timeline-previous").addEventListener("click", () => search.step(-1));
  byId("timeline-in").addEventListener("click", () => timeline.zoom(0.5));
  byId("timeline-out").addEventListener("click", () => timeline.zoom(2));
  byId("timeline-all").addEventListener("click", () => {
    timeline.finding = null;
    timeline.look(0, boxes.last);
  });
  new ResizeObserver(() => {
    timeline.layOut();
    timeline.draw();
  }).observe(byId("stage"));
  timeline.layOut();
  tell();
  timeline.drawLanes();
}
