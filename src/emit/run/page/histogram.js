// histogram: distribution of step times: bins of equal width, quantiles marked, the number beyond the last bin stated.
const HISTOGRAM = {
  width: 520,
  height: 190,
  left: 8,
  right: 8,
  top: 34,
  bottom: 24
};
const HISTOGRAM_FLOOR = HISTOGRAM.height - HISTOGRAM.bottom;

function drawBins(bins) {
  const wide = HISTOGRAM.width - HISTOGRAM.left - HISTOGRAM.right, shown = bins.width === 0 ? 1 : bins.counts.length;
  const each = wide / shown, most = Math.max(...bins.counts, 1);
  return bins.counts.slice(0, shown).map((value, at) => {
    if (value === 0) return "";
    const tall = Math.max(value / most * (HISTOGRAM_FLOOR - HISTOGRAM.top), 1), from = bins.from + at * bins.width;
    const place = {x: HISTOGRAM.left + at * each + 0.5, width: Math.max(each - 1, 1), y: HISTOGRAM_FLOOR - tall};
    return svg("rect", {class: "bin", ...place, height: tall},
      svg("title", null, exactly(value) + " of " + time(from) + " to " + time(from + bins.width)));
  });
}
// Labels that would overlap the previous one are placed a line lower.
function drawQuantiles(row, bins) {
  const wide = HISTOGRAM.width - HISTOGRAM.left - HISTOGRAM.right, made = [];
  let before = -Infinity, level = 0;
  [["p50", row.p50], ["p95", row.p95], ["p99", row.p99]].forEach(([name, value]) => {
    if (!known(value) || value > bins.end + bins.width) return;
    const share = bins.width === 0 ? 0.5 : (value - bins.from) / (bins.end - bins.from);
    const x = HISTOGRAM.left + share * wide, near = x > HISTOGRAM.width - 80;
    level = x - before < 74 ? level + 1 : 0;
    before = x;
    const y = 10 + level * 12, anchor = {x: near ? x - 4 : x + 4, "text-anchor": near ? "end" : "start"};
    made.push(svg("line", {class: "mark-line", x1: x, x2: x, y1: y + 3, y2: HISTOGRAM_FLOOR}),
      svg("text", {class: "strong", y: y + 2, ...anchor}, name + " " + time(value)));
  });
  return made;
}
function histogramText(row, bins) {
  const beyond = bins.over > 0 ? "; " + exactly(bins.over) + " longer than " + time(bins.end) : "";
  return "Histogram of " + exactly(row.count) + " durations of " + row.name + " from " + time(row.min) + " to " +
    time(row.max) + ": p50 " + time(row.p50) + ", p95 " + time(row.p95) + ", p99 " + time(row.p99) + beyond;
}
function putHistogram(row) {
  const [from, width, over, ...counts] = row.bins,
                            bins = {from, width, over, counts, end: from + width * counts.length};
  if (counts.length === 0 || !known(width)) return null;
  const right = HISTOGRAM.width - HISTOGRAM.right, y = HISTOGRAM.height - 7;
  const beyond = over > 0 ? ", and " + exactly(over) + " longer, up to " + time(row.max) : "";
  const size = "0 0 " + HISTOGRAM.width + " " + HISTOGRAM.height;
  const picture = svg("svg", {viewBox: size, role: "img", "aria-label": histogramText(row, bins)}, drawBins(bins),
    svg("line", {class: "axis", x1: HISTOGRAM.left, x2: right, y1: HISTOGRAM_FLOOR, y2: HISTOGRAM_FLOOR}),
    drawQuantiles(row, bins), svg("text", {x: HISTOGRAM.left, y}, time(from)),
    svg("text", {x: right, y, "text-anchor": "end"}, time(bins.end) + beyond));
  return el("figure", null, el("h4", null, "Distribution of step times"), picture);
}
