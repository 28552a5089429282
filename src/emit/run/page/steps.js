// steps: the parts of a step, and the distribution of step times.
const NO_PART = (name) => PHASED.has(name) ? "not in a phase" : "not in a span";
// The parts of all steps of a name, by name, and the rest.
function phasesOf(name) {
  const steps = STEP_ROWS.filter((row) => row.name === name), parts = new Map();
  const total = steps.reduce((sum, row) => sum + row.total, 0);
  steps.forEach((step) => partsOf(step).forEach((child) => {
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
  if (total > inside) few.push({name: NO_PART(name), total: total - inside, calls: 0, rows: [], others: true});
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

function putSlowest(row) {
  if (!row.slowest || row.slowest.length === 0) return null;
  const links = row.slowest.map(([index, lasts, at], place) => {
    const name = (index === null ? "one" : "step " + index) + " " + time(lasts);
    const act = {click: () => timeline.goTo(at, at + lasts, true)};
    const label = "Show in the timeline: " + name;
    return [place > 0 ? ", " : "", el("button", {type: "button", class: "link", "aria-label": label, on: act}, name)];
  });
  return el("p", {class: "small muted"}, "Slowest: ", links);
}
function putStepHead(row) {
  const pair = (name, value) => el("span", {class: "pair"}, name, el("b", null, value));
  const times = ["p50", "p95", "p99", "max"].filter((key) => known(row[key])).map((key) => pair(key, time(row[key])));
  const rates = (row.numbers || []).filter((number) => known(number[3])).slice(0, 3);
  const slow = known(row.first) && known(row.rest_p50) && row.first > 2 * row.rest_p50;
  return el("div", {class: "step-head"}, el("h3", null, row.name),
    pair("steps", exactly(row.count) + (row.unfinished ? " and " + row.unfinished + " unfinished" : "")), times,
    known(row.per_second) && pair("per second", count(row.per_second)),
    rates.map((number) => pair(number[0] + "/s", (number[4] ? "≈ " : "") + count(number[3]))),
    slow && pair("first", time(row.first) + ", " + digits(row.first / row.rest_p50) + "× the median of the others"));
}
function putStep(row) {
  const phases = phasesOf(row.name), parted = phases.total > 0 && phases.parts.length > 0;
  const left = el("div", null, parted && putPhaseTable(phases), putSlowest(row));
  return el("article", {class: "step"}, putStepHead(row), parted && putStack(phases),
    putCourse(row, phases), el("div", {class: "two"}, left, putHistogram(row)));
}
function putSteps() {
  const steps = rowsOf(DATA.steps).filter((row) => row.count > 0).sort((a, b) => b.total - a.total);
  byId("steps").hidden = steps.length === 0;
  byId("steps-body").append(...steps.slice(0, 6).map(putStep));
  if (steps.length > 6)
    byId("steps-body").append(el("p", {class: "muted"}, steps.length - 6 + " more kinds of step are in the tables."));
}
