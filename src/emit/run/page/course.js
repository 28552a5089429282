// course: the composition of steps over the run: one bar per step, or per as many steps as keep the bars wide enough to
// see, stacked by part. A bar far longer than the others is truncated and labelled with its duration.
const COURSE = {
  width: 1240,
  height: 210,
  left: 64,
  right: 8,
  top: 20,
  bottom: 24
};
const COURSE_CUT = 2;  // times the median of the bars

// Bars: the parts in the order of `parts`, all others merged, and the rest that is in no part.
function courseOf(row, parts) {
  const [names, , ...bins] = row.course, shown = parts.filter((part) => !part.others);
  const places = shown.map((part) => names.indexOf(part.name));
  let first = 1;
  return bins.map(([steps, from, to, total, ...times]) => {
    const each = places.map((at) => at < 0 ? 0 : times[at] / steps), all = total / steps;
    const inside = times.reduce((sum, one) => sum + one, 0) / steps, named = each.reduce((sum, one) => sum + one, 0);
    const bar = {first, steps, from, to, all, each};
    bar.more = Math.max(0, inside - named);
    bar.none = Math.max(0, all - inside);
    first += steps;
    return bar;
  });
}
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}
function niceTime(value) {
  const unit = [1e9, 1e6, 1e3, 1].find((one) => value >= one) || 1;
  return niceTop(value / unit, "count", 1) * unit;
}
// Counted from the first: a step's own number is assigned by the program.
function nth(n) {
  const teen = n % 100 > 10 && n % 100 < 14;
  return exactly(n) + (!teen && ["", "st", "nd", "rd"][n % 10] || "th");
}
function barName(bar) {
  return (bar.steps === 1 ? nth(bar.first) : nth(bar.first) + " to " + nth(bar.first + bar.steps - 1)) + " step";
}
function barPieces(bar, parts, none) {
  const shown = parts.filter((part) => !part.others);
  return [
    ...shown.map((part, at) => [part.name, bar.each[at], partFill(part)]), ["others", bar.more, fillStyle(OTHERS)],
    [none, bar.none, fillStyle(OTHERS)]
  ].filter(([, lasts]) => lasts > 0);
}
function drawBars(bars, scale, parts, none) {
  const wide = (COURSE.width - COURSE.left - COURSE.right) / bars.length, gap = wide > 5 ? 1 : 0;
  return bars.map((bar, at) => {
    const x = COURSE.left + at * wide, group = svg("g", {class: "bar-of-course"});
    let from = 0;
    barPieces(bar, parts, none).forEach(([, lasts, colour]) => {
      const low = scale.y(Math.min(from, scale.top)), high = scale.y(Math.min(from + lasts, scale.top));
      const piece = svg("rect", {x: x.toFixed(2), y: high.toFixed(2), width: (wide - gap).toFixed(2),
                                 height: Math.max(0, low - high).toFixed(2)});
      piece.style.fill = colour;
      group.append(piece);
      from += lasts;
    });
    return group;
  });
}
// Labels of truncated bars; one that would overlap the previous label is omitted.
function drawCut(bars, scale) {
  const wide = (COURSE.width - COURSE.left - COURSE.right) / bars.length, made = [];
  let before = -Infinity;
  bars.forEach((bar, at) => {
    const x = COURSE.left + (at + 0.5) * wide;
    if (bar.all <= scale.top) return;
    made.push(svg("path", {class: "cut", d: "M" + (x - 4) + " " + (COURSE.top + 1) + "l4 -5l4 5z"}));
    if (x - before < 74) return;
    before = x;
    const near = x > COURSE.width - 70;
    made.push(svg("text", {class: "strong", x: near ? x - 7 : x + 7, y: 12, "text-anchor": near ? "end" : "start"},
      time(bar.all)));
  });
  return made;
}
function drawCourseAxes(bars, scale) {
  const made = [], right = COURSE.width - COURSE.right, floor = COURSE.height - COURSE.bottom;
  for (let part = 0; part <= 2; part++) {
    const y = scale.y(scale.top * part / 2);
    made.push(svg("line", {class: part ? "grid-line" : "axis", x1: COURSE.left, x2: right, y1: y, y2: y}),
      svg("text", {x: COURSE.left - 7, y: y + 4, "text-anchor": "end"}, part ? time(scale.top * part / 2) : "0"));
  }
  const last = bars[bars.length - 1], all = last.first + last.steps - 1;
  const mark = (at, anchor) => {
    const bar = bars[at], x = COURSE.left + at / bars.length * (right - COURSE.left);
    const label = nth(bar.first) + (at === 0 ? " step" : "") + " at " + time(bar.from);
    made.push(svg("text", {x, y: floor + 16, "text-anchor": anchor}, label));
  };
  mark(0, "start");
  for (let at = 1; at <= 4 && bars.length >= 10; at++) mark(Math.floor(bars.length * at / 5), "middle");
  made.push(svg("text", {x: right, y: floor + 16, "text-anchor": "end"}, nth(all) + " ended at " + time(last.to)));
  return made;
}
function hoverCourse(picture, bars, parts, none) {
  const barAt = (event) => {
    const box = picture.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * COURSE.width;
    return bars[Math.floor((x - COURSE.left) / (COURSE.width - COURSE.left - COURSE.right) * bars.length)];
  };
  picture.addEventListener("pointermove", (event) => {
    const bar = barAt(event);
    if (!bar) {
      tip.hide();
      return;
    }
    const lines = barPieces(bar, parts, none).map(
      ([name, lasts]) => name + ": " + time(lasts) + ", " + percent(lasts / bar.all));
    const mean = bar.steps === 1 ? "" : " on average";
    tip.show(event.clientX, event.clientY, barName(bar) + ", " + time(bar.all) + mean,
      ["from " + time(bar.from), ...lines, "Click to show in the timeline"]);
  });
  picture.addEventListener("pointerleave", () => tip.hide());
  picture.addEventListener("click", (event) => {
    const bar = barAt(event);
    if (bar) timeline.goTo(bar.from, bar.to, true);
  });
}
// The same data as a table, for screen readers and for exact values.
function putCourseTable(bars, parts, none) {
  const shown = parts.filter((part) => !part.others), number = (value) => el("td", {class: "number"}, time(value));
  const body = el("div", {class: "plain scrolls", tabindex: "0", role: "region", "aria-label": "Steps over time"});
  const put = () => body.childElementCount > 0 || body.append(el("table", null,
    el("caption", {class: "sr"}, "What steps were made of, in their order"),
    el("thead", null, el("tr", null, ["Steps", "from", "each", ...shown.map((part) => part.name), "others",
      none].map((name, at) => el("th", {scope: "col", class: at > 0 ? "number" : null}, name)))),
    el("tbody", null, bars.map((bar) => el("tr", null,
      el("th", {scope: "row"}, barName(bar)), number(bar.from), number(bar.all),
      bar.each.map(number), number(bar.more), number(bar.none))))));
  return el("details", {on: {toggle: put}}, el("summary", null, "Step time over the run as a table"), body);
}
function putCourse(row, phases) {
  if (!row.course || row.course.length < 4 || phases.parts.length === 0) return null;
  const none = NO_PART(row.name), bars = courseOf(row, phases.parts);
  const most = Math.max(...bars.map((bar) => bar.all)), usual = median(bars.map((bar) => bar.all));
  const top = niceTime(Math.min(most, usual * COURSE_CUT)), tall = COURSE.height - COURSE.top - COURSE.bottom;
  const scale = {top, y: (value) => COURSE.height - COURSE.bottom - value / top * tall};
  const slowest = bars.reduce((one, other) => other.all > one.all ? other : one);
  const each = bars[0].steps === 1 ? "each step" : plural(bars[0].steps, "step") + " a bar";
  const label = "Step time over the run, " + each + ", stacked by part. First " + time(bars[0].all) + ", last " +
    time(bars[bars.length - 1].all) + ", longest " + time(slowest.all) + " (" + barName(slowest) + ").";
  const size = "0 0 " + COURSE.width + " " + COURSE.height;
  const picture = svg("svg", {viewBox: size, role: "img", "aria-label": label}, drawCourseAxes(bars, scale),
    drawBars(bars, scale, phases.parts, none), drawCut(bars, scale));
  hoverCourse(picture, bars, phases.parts, none);
  return el("figure", {class: "course"}, el("h4", null, "Over the run, " + each), picture,
    putCourseTable(bars, phases.parts, none));
}
