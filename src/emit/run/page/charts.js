// charts: sampled metrics over the whole run, one chart per topic, the peak marked and linked to its span.
const CHART = {
  width: 620,
  height: 180,
  left: 64,
  right: 14,
  top: 18,
  bottom: 24
};

// The charts. `of`: [metric, subject, label]; a chart without any of its lines is omitted.
const CHARTS = [
  {
    title: "CPU in use by the program",
    unit: "cores",
    of: [["cpu.usage", "tree", "all"], ["cpu.user", "tree", "user"], ["cpu.system", "tree", "system"]],
    limit: "cores_allowed"
  },
  {
    title: "CPU of the machine",
    unit: "cores",
    of: [
      ["cpu.user", "system", "user"], ["cpu.system", "system", "system"],
      ["cpu.iowait", "system", "waiting for disks"], ["cpu.steal", "system", "stolen by the hypervisor"]
    ]
  },
  {title: "CPU by process", unit: "cores", of: [["cpu", "process"]], least: 2},
  {
    title: "Throttled by the CPU limit",
    unit: "cores",
    of: [["cpu.throttled", "container", "throttled"]],
    silent: true
  },
  {
    title: "Threads",
    unit: "count",
    of: [
      ["threads", "tree", "all"], ["threads.running", "tree", "running"],
      ["threads.disk_wait", "tree", "waiting for disks"]
    ]
  },
  {
    title: "Resident memory of the program",
    unit: "bytes",
    of: [
      ["memory.rss", "tree", "resident"], ["memory.pss", "tree", "proportional (PSS)"],
      ["memory.swapped", "tree", "swapped out"]
    ],
    limit: "memory_allowed_bytes"
  },
  {title: "Resident memory by process", unit: "bytes", of: [["memory.rss", "process"]], least: 2},
  {
    title: "Memory of the machine",
    unit: "bytes",
    of: [
      ["memory.used", "system", "in use"], ["memory.cached", "system", "file cache"],
      ["swap.used", "system", "swap"]
    ]
  },
  {title: "Memory of the container", unit: "bytes", of: [["memory.used", "container", "in use"]], silent: true},
  {
    title: "Disk, by the program",
    unit: "bytes_per_s",
    of: [["disk.read", "tree", "read"], ["disk.write", "tree", "written"]],
    silent: true
  },
  {
    title: "Disks of the machine",
    unit: "bytes_per_s",
    of: [["disk.read", "disk", "read"], ["disk.write", "disk", "written"]],
    silent: true
  },
  {title: "Disks busy", unit: "share", of: [["disk.busy", "disk"]], silent: true},
  {
    title: "Network of the machine",
    unit: "bytes_per_s",
    of: [["net.received", "network", "in"], ["net.sent", "network", "out"]],
    silent: true
  },
  {title: "GPU busy", unit: "share", of: [["gpu.busy", "gpu"]]},
  {title: "GPU memory", unit: "bytes", of: [["memory.used", "gpu"]]},
  {title: "GPU power", unit: "watts", of: [["power", "gpu"]]},
  {title: "GPU temperature", unit: "celsius", of: [["temperature", "gpu"]]},
  {title: "GPU clock", unit: "hertz", of: [["gpu.clock", "gpu"]]},
  {title: "Power", unit: "watts", of: [["power", "sensor"]]},
  {title: "Temperature", unit: "celsius", of: [["temperature", "sensor"]]},
  {
    title: "Pressure: share of time some task waited",
    unit: "share",
    of: [
      ["pressure.cpu", "system", "for a CPU"], ["pressure.memory", "system", "for memory"],
      ["pressure.io", "system", "for a disk"]
    ],
    silent: true
  },
];
const LINES_MOST = 6;

function subjectName(row) {
  if (row.subject === "process") return (row.label || "process") + " (" + row.key + ")";
  if (row.subject === "gpu") return "GPU " + row.key;
  return row.label || row.subject;
}
function linesOf(spec) {
  const found = [];
  spec.of.forEach(([metric, subject, label]) => {
    const rows = metricsOf(metric, subject), many = rows.length > 1 || !label;
    rows.forEach((row) => found.push(
                   {row, line: row.line, label: many ? subjectName(row) + (label ? ", " + label : "") : label}));
  });
  const worth = found.filter((one) => one.row.max > 0 || found.length === 1);
  return worth.length > LINES_MOST ? worth.sort((a, b) => b.row.max - a.row.max) : worth;
}

// ---- drawing ------------------------------------------------------------------------------------
function niceTop(value, unit, room) {
  if (!(value > 0)) return 1;
  const base =
    unit.startsWith("bytes") ? 2 ** (10 * Math.floor(Math.log2(value) / 10)) : 10 ** Math.floor(Math.log10(value));
  const steps = unit.startsWith("bytes") ?
    [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32, 40, 64, 80, 100, 128, 160, 200, 256, 320, 400, 512, 640, 800, 1024] :
    [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
  return base * (steps.find((step) => step * base >= value * room) || steps[steps.length - 1]);
}
// A line through the middles of its points, the area under it, and the range around it; gaps stay gaps.
function pathsOf(line, x, y) {
  const put = (at, value) => x(at).toFixed(1) + " " + y(value).toFixed(1);
  let mean = "", area = "", range = "", first = 0;
  const piece = (from, end) => {
    const points = [put(line.start[from], line.mean[from])], lows = [];
    let highs = "";
    for (let at = from; at < end; at++) {
      const middle = (line.start[at] + line.end[at]) / 2;
      points.push(put(middle, line.mean[at]));
      highs += (highs ? "L" : "M") + put(middle, line.max[at]);
      lows.unshift(put(middle, line.min[at]));
    }
    points.push(put(line.end[end - 1], line.mean[end - 1]));
    mean += "M" + points.join("L");
    area += "M" + put(line.start[from], 0) + "L" + points.join("L") + "L" + put(line.end[end - 1], 0) + "Z";
    range += highs + "L" + lows.join("L") + "Z";
  };
  for (let at = 1; at <= line.n; at++) {
    const least = at < line.n ? Math.max(2 * (line.end[at] - line.start[at]), boxes.last * 1e-4) : 0;
    if (at < line.n && line.start[at] - line.end[at - 1] <= least) continue;
    piece(first, at);
    first = at;
  }
  return [mean, area, range];
}
function drawAxes(scale, spec) {
  const made = [], {left, right, width, height, bottom} = CHART;
  for (let part = 0; part <= 2; part++) {
    const value = scale.top * part / 2, y = scale.y(value);
    made.push(svg("line", {class: part ? "grid-line" : "axis", x1: left, x2: width - right, y1: y, y2: y}),
      svg("text", {x: left - 7, y: y + 4, "text-anchor": "end"},
        part === 0 ? "0" : show(value, spec.unit).replace(/\.0+(?= )/, "")));
  }
  const ticks = ticksOf(0, boxes.last, 5), step = ticks.length > 1 ? ticks[1] - ticks[0] : boxes.last;
  ticks.forEach(
    (at) => made.push(svg("text",
      {x: scale.x(at), y: height - bottom + 16, "text-anchor": at === 0 ? "start" : "middle"}, tickLabel(at, step))));
  return made;
}
function drawPeak(scale, peak) {
  const x = scale.x(peak.at), y = scale.y(peak.value),
        middle = Math.max(CHART.left + 34, Math.min(CHART.width - 44, x));
  return [
    svg("circle", {class: "dot", cx: x, cy: y, r: 4.5, fill: peak.colour}),
    svg("text", {class: "strong", x: middle, y: y - 8, "text-anchor": "middle"}, show(peak.value, peak.unit))
  ];
}
function peakOf(lines, spec) {
  const best = lines.reduce((one, other) => !one || other.row.max > one.row.max ? other : one, null);
  return {
    value: best.row.max,
    at: best.row.max_at,
    open: best.row.open,
    label: best.label,
    unit: spec.unit,
    colour: lineColour(lines.indexOf(best))
  };
}
function peakText(peak, lines) {
  return "Peak " + show(peak.value, peak.unit) + (lines.length > 1 && peak.label ? " (" + peak.label + ")" : "") +
    " at " + time(peak.at) + (peak.open ? ", in " + peak.open : "");
}

function hoverChart(picture, lines, spec) {
  const cross = svg("line", {class: "cross", y1: CHART.top, y2: CHART.height - CHART.bottom, visibility: "hidden"});
  picture.append(cross);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * CHART.width;
    const at = (x - CHART.left) / (CHART.width - CHART.left - CHART.right) * boxes.last;
    if (at < 0 || at > boxes.last) {
      tip.hide();
      return;
    }
    cross.setAttribute("x1", x);
    cross.setAttribute("x2", x);
    cross.setAttribute("visibility", "visible");
    tip.show(event.clientX, event.clientY, time(at), lines.map((one) => {
      const value = valueAt(one.line, at);
      return one.label + ": " + (value === null ? "n/a" : show(value, spec.unit));
    }));
  });
  picture.addEventListener("pointerleave", () => {
    tip.hide();
    cross.setAttribute("visibility", "hidden");
  });
}
const lineColour = (at) => "var(--line-" + at + ")";
const trimmed = (value, unit) => show(value, unit).replace(/\.0+(?= )/, "");

// The value at the top of the scale: 100 % for a share, a limit that is close enough, or the maximum of the lines.
function topOf(most, limit, spec) {
  if (spec.unit === "share" && most > 0.4 && most <= 1.05) return 1;
  return limit > most ? niceTop(limit, spec.unit, 1) : niceTop(most, spec.unit, 1.02);
}
function scaleOf(top) {
  const wide = CHART.width - CHART.left - CHART.right, tall = CHART.height - CHART.top - CHART.bottom;
  return {
    top,
    x: (at) => CHART.left + at / boxes.last * wide,
    y: (value) => CHART.height - CHART.bottom - value / top * tall
  };
}
function drawLimit(scale, limit, spec) {
  const y = scale.y(limit), right = CHART.width - CHART.right;
  return [
    svg("line", {class: "limit", x1: CHART.left, x2: right, y1: y, y2: y}),
    svg("text", {x: right, y: y + 13, "text-anchor": "end"}, "limit " + trimmed(limit, spec.unit))
  ];
}
function drawLines(picture, scale, lines) {
  lines.forEach((one, at) => {
    const [mean, area, range] = pathsOf(one.line, scale.x, scale.y);
    picture.append(svg("path", {class: "range", d: range, fill: lineColour(at)}));
    if (at === 0) picture.append(svg("path", {class: "area", d: area, fill: lineColour(at)}));
    picture.append(svg("path", {class: "line", d: mean, stroke: lineColour(at)}));
  });
}
function putKey(one, at) {
  const swatch = el("i");
  swatch.style.background = lineColour(at);
  return el("span", {class: "key", title: one.label}, swatch, one.label);
}
function putPeak(peak, lines, spec) {
  const label = "Show the peak of " + spec.title + " in the timeline";
  return el("p", {class: "peak"}, "Peak ", el("b", null, show(peak.value, spec.unit)),
    lines.length > 1 ? " (" + peak.label + ")" : "", " at " + time(peak.at),
    peak.open ? [" in ", el("code", null, peak.open)] : "", " ",
    el("button", {type: "button", class: "link go", "aria-label": label, on: {click: () => goToPeak(peak)}}, "show"));
}
function putChart(spec) {
  const all = linesOf(spec), lines = all.slice(0, LINES_MOST), more = all.length - lines.length;
  if (lines.length < (spec.least || 1) || (spec.silent && !lines.some((one) => one.row.max > 0))) return null;
  const most = lines.reduce((top, one) => Math.max(top, one.row.max, one.line.high), 0);
  const limit = known(USED[spec.limit]) && USED[spec.limit] < most * 4 ? USED[spec.limit] : 0;
  const scale = scaleOf(topOf(most, limit, spec)), peak = peakOf(lines, spec);
  const hasPeak = known(peak.at) && known(peak.value);
  const means = lines.map((one) => one.label + ": mean " + show(one.row.mean, spec.unit)).join(", ");
  const label = spec.title + ". " + (hasPeak ? peakText(peak, lines) + ". " : "") + means + ".";
  const picture = svg("svg", {viewBox: "0 0 " + CHART.width + " " + CHART.height, role: "img", "aria-label": label});
  picture.append(...drawAxes(scale, spec));
  drawLines(picture, scale, lines);
  if (limit > 0) picture.append(...drawLimit(scale, limit, spec));
  if (hasPeak) picture.append(...drawPeak(scale, peak));
  hoverChart(picture, lines, spec);
  const caption = el("figcaption", null, el("h3", null, spec.title), lines.map(putKey),
    more > 0 && el("span", {class: "muted"}, "and " + more + " more in the tables"));
  return el("figure", {class: "chart"}, caption, picture, hasPeak && putPeak(peak, lines, spec));
}
function goToPeak(peak) {
  const around = boxes.last * 0.02;
  timeline.goTo(Math.max(0, peak.at - around), Math.min(boxes.last, peak.at + around), false);
  let found = -1;
  boxes.rows.forEach((row) => {
    const at = boxes.at(row, peak.at, 0);
    if (at >= 0 && boxes.nameOf(at) === peak.open) found = at;
  });
  if (found >= 0) putPicked(found);
  timeline.cursor = peak.at;
  timeline.draw();
}

// Metrics that could not be measured, with the reasons; a shared reason is shown once.
function putAbsent() {
  const reasons = new Map();
  METRICS.filter((row) => row.absent && row.samples === 0).forEach((row) => {
    const what =
      row.metric + (row.subject === "system" || row.subject === "tree" ? "" : " of " + subjectName(row));
    reasons.set(row.absent, (reasons.get(row.absent) || []).concat(what));
  });
  if (reasons.size === 0) return;
  const some = (what) => what.slice(0, 4).join(", ") + (what.length > 4 ? " and " + (what.length - 4) + " more" : "");
  const items =
    [...reasons].map(([reason, what]) => el("li", null, el("b", null, some(what)), ": ", na(reason), ", " + reason));
  byId("absent").append(el("div", {class: "not-measured"}, el("h3", null, "Not measured"), el("ul", null, items)));
}
function putCharts() {
  byId("charts").append(...CHARTS.map(putChart).filter(Boolean));
  putHeat();
  putAbsent();
  byId("resources").hidden = byId("charts").children.length === 0 && byId("absent").children.length === 0;
}
