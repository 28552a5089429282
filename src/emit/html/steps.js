// steps: what a step is made of, and how long steps take.
const SPANS = rowsOf(DATA.spans), STEP_KIND = 2;
SPANS.forEach((row, at) => {
  row.at = at;
  row.children = [];
});
SPANS.forEach((row) => {
  if (row.parent !== null) SPANS[row.parent].children.push(row);
});

// The parts of all steps of a name: direct children by name, and what is left.
function phasesOf(name) {
  const steps = SPANS.filter((row) => row.kind === STEP_KIND && row.name === name), parts = new Map();
  const total = steps.reduce((sum, row) => sum + row.total, 0);
  steps.forEach((step) => step.children.forEach((child) => {
    const part = parts.get(child.name) || {name: child.name, total: 0, calls: 0, rows: []};
    part.total += child.total;
    part.calls += child.calls;
    part.rows.push(child);
    parts.set(child.name, part);
  }));
  const made = [...parts.values()].sort((a, b) => b.total - a.total), few = made.slice(0, 9), rest = made.slice(9);
  if (rest.length > 0)
    few.push({
      name: rest.length + " more",
      total: rest.reduce((sum, part) => sum + part.total, 0),
      calls: 0,
      rows: [],
      others: true
    });
  const inside = made.reduce((sum, part) => sum + part.total, 0);
  if (total > inside) few.push({name: "not in a span", total: total - inside, calls: 0, rows: [], others: true});
  return {total, count: steps.reduce((sum, row) => sum + row.calls, 0), parts: few};
}
const partFill = (part) => fillStyle(part.others ? OTHERS : fillOf(part.name));

function putStack(phases) {
  const bar = el("div", {
    class: "stack",
    role: "img",
    "aria-label": "Parts of a step: " +
      phases.parts.map((part) => part.name + " " + percent(part.total / phases.total)).join(", ")
  });
  phases.parts.forEach((part) => {
    const share = part.total / phases.total,
          piece = el("span", {class: share < 0.02 ? "thin" : null, title: part.name + ": " + percent(share)},
            share >= 0.05 ? part.name + " " + percent(share) : "");
    piece.style.flexGrow = share;
    piece.style.background = partFill(part);
    bar.append(piece);
  });
  return bar;
}
function putPhaseTable(phases) {
  const one = (value) => el(
    "td", {class: "number"}, known(value) ? time(value) : na("several spans of that name: see the table of spans"));
  return el("div", {class: "plain"},
    el("table", null, el("caption", {class: "sr"}, "Parts of a step"),
      el("thead", null, el("tr", null, el("th", {scope: "col"}, "Part"), ["Per step", "Share", "p50",
        "p95"].map((name) => el("th", {scope: "col", class: "number"}, name)))),
      el("tbody", null, phases.parts.map((part) => {
        const swatch = el("span", {class: "swatch", "aria-hidden": "true"}),
              single = part.rows.length === 1 ? part.rows[0] : {};
        swatch.style.background = partFill(part);
        return el("tr", null, el("th", {scope: "row"}, swatch, part.name), one(part.total / phases.count),
          el("td", {class: "number"}, percent(part.total / phases.total)),
          part.others ? [el("td"), el("td")] : [one(single.p50), one(single.p95)]);
      }))));
}

// ---- histogram ----------------------------------------------------------------------------------
function putHistogram(row) {
  const [from, width, over, ...counts] = row.bins, n = counts.length;
  if (n === 0 || !known(width)) return null;
  const size = {width: 520, height: 190, left: 8, right: 8, top: 34, bottom: 24},
        plot = size.width - size.left - size.right;
  const shown = width === 0 ? 1 : n, most = Math.max(...counts, 1), end = from + width * n;
  const x = (ns) => width === 0 ? size.left + plot / 2 : size.left + (ns - from) / (end - from) * plot;
  const picture = svg("svg", {
    viewBox: "0 0 " + size.width + " " + size.height,
    role: "img",
    "aria-label": "Histogram of " + exactly(row.count) + " durations of " + row.name + " from " + time(row.min) +
      " to " + time(row.max) + ": p50 " + time(row.p50) + ", p95 " + time(row.p95) + ", p99 " + time(row.p99) +
      (over > 0 ? "; " + exactly(over) + " longer than " + time(end) : "")
  });
  const each = plot / shown, floor = size.height - size.bottom;
  counts.slice(0, shown).forEach((value, at) => {
    const tall = value / most * (floor - size.top);
    if (value > 0)
      picture.append(svg("rect", {
        class: "bin",
        x: size.left + at * each + 0.5,
        width: Math.max(each - 1, 1),
        y: floor - Math.max(tall, 1),
        height: Math.max(tall, 1)
      },
        svg("title", null,
          exactly(value) + " of " + time(from + at * width) + " to " + time(from + (at + 1) * width))));
  });
  picture.append(svg("line", {class: "axis", x1: size.left, x2: size.width - size.right, y1: floor, y2: floor}));
  let before = -Infinity, level = 0;
  [["p50", row.p50], ["p95", row.p95], ["p99", row.p99]].forEach(([name, value]) => {
    if (!known(value) || value > end + width) return;
    const place = x(value), room = place - before < 74;
    level = room ? level + 1 : 0;
    before = place;
    const near = place > size.width - 80, y = 10 + level * 12;
    picture.append(svg("line", {class: "mark-line", x1: place, x2: place, y1: y + 3, y2: floor}),
      svg("text", {class: "strong", x: near ? place - 4 : place + 4, y: y + 2, "text-anchor": near ? "end" : "start"},
        name + " " + time(value)));
  });
  picture.append(svg("text", {x: size.left, y: size.height - 7}, time(from)),
    svg("text", {x: size.width - size.right, y: size.height - 7, "text-anchor": "end"},
      time(end) + (over > 0 ? ", and " + exactly(over) + " longer, up to " + time(row.max) : "")));
  return el("figure", null, el("h4", null, "How long steps take"), picture);
}
function putSlowest(row) {
  if (!row.slowest || row.slowest.length === 0) return null;
  return el("p", {class: "small muted"}, "Slowest: ",
    row.slowest.map(
      ([index, lasts, at], place) => [place > 0 ? ", " : "",
        el("button", {
          type: "button",
          class: "link",
          "aria-label": "Show in the timeline: step " + (index === null ? "" : index) + ", " + time(lasts),
          on: {click: () => timeline.goTo(at, at + lasts, true)}
        },
          (index === null ? "one" : "step " + index) + " " + time(lasts))]));
}
function putStep(row, kind) {
  const pair = (name, value) => el("span", {class: "pair"}, name, el("b", null, value)), phases = phasesOf(row.name);
  const slow = known(row.first) && known(row.rest_p50) && row.first > 2 * row.rest_p50;
  return el("article", {class: "step"},
    el("div", {class: "step-head"}, el("h3", null, row.name),
      pair(kind, exactly(row.count) + (row.unfinished ? " and " + row.unfinished + " unfinished" : "")),
      known(row.p50) && pair("p50", time(row.p50)), known(row.p95) && pair("p95", time(row.p95)),
      known(row.p99) && pair("p99", time(row.p99)), known(row.max) && pair("max", time(row.max)),
      known(row.per_second) && pair("per second", count(row.per_second)),
      (row.numbers || []).filter(([, , rate]) => known(rate)).slice(0, 3).map(([name, ,
        rate]) => pair(name + "/s", count(rate))),
      slow &&
        pair("first", time(row.first) + ", " + digits(row.first / row.rest_p50) + "× the median of the others")),
    phases.total > 0 && phases.parts.length > 0 && putStack(phases),
    el("div", {class: "two"},
      phases.total > 0 && phases.parts.length > 0 ? el("div", null, putPhaseTable(phases), putSlowest(row)) :
                                                    el("div", null, putSlowest(row)),
      putHistogram(row)));
}
function putSteps() {
  const steps = rowsOf(DATA.steps).filter((row) => row.count > 0).sort((a, b) => b.total - a.total);
  byId("steps").hidden = steps.length === 0;
  byId("steps-body").append(...steps.slice(0, 6).map((row) => putStep(row, "steps")));
  if (steps.length > 6)
    byId("steps-body").append(el("p", {class: "muted"}, steps.length - 6 + " more kinds of step are in the tables."));
}
