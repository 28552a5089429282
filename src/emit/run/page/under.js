// under: charts below the lanes on the same time scale: sampled metrics, and the program's own counters.
const UNDER_ROW = 54, UNDER_MOST = 12;
const METRICS = rowsOf(DATA.metrics);
METRICS.forEach((row) => {
  row.line = row.points && row.points.n > 0 ? pointsOf(row.points) : null;
});
const COUNTERS =
  DATA.timeline.counters.map((row) => ({name: row.name, line: pointsOf(row.points)})).filter((row) => row.line.n > 0);
// The sum of series such as user and system time, if they were sampled together; else the first one.
function sumOf(lines) {
  const [first, ...others] = lines;
  const fits = others.every((line) => line.n === first.n && line.start[0] === first.start[0]);
  if (!fits || others.length === 0) return first;
  const made = {n: first.n, start: first.start, end: first.end, low: 0, high: 0};
  ["min", "mean", "max"].forEach((part) => {
    made[part] = first[part].map((value, at) => others.reduce((sum, line) => sum + line[part][at], value));
  });
  made.high = made.max.reduce((most, one) => Math.max(most, one), 0);
  return made;
}
// The CPU time of a process as an additional series: the sum of two.
const processes = new Map();
METRICS.filter((row) => row.subject === "process").forEach((row) => {
  const one = processes.get(row.key) || {key: row.key};
  one[row.metric] = row;
  processes.set(row.key, one);
});
processes.forEach((one) => {
  const parts = [one["cpu.user"], one["cpu.system"]].filter((row) => row && row.line);
  if (parts.length === 0) return;
  const line = sumOf(parts.map((row) => row.line)), at = line.max.indexOf(line.high);
  METRICS.push({
    ...parts[0],
    metric: "cpu",
    line,
    derived: true,
    max: line.high,
    mean: parts.reduce((sum, row) => sum + (row.mean || 0), 0),
    max_at: at < 0 ? parts[0].max_at : (line.start[at] + line.end[at]) / 2,
    open: at < 0 ? parts[0].open : null
  });
});
const metricsOf = (metric, subject) =>
  METRICS.filter((row) => row.metric === metric && row.subject === subject && row.line);

const under = {
  tracks: [],
  find() {
    const add = (name, rows, unit, on) => {
      if (rows.length > 0) this.tracks.push({name, unit, line: sumOf(rows.map((row) => row.line)), on});
    };
    const program = (metric) => metricsOf(metric, "tree").slice(0, 1), one = (rows) => rows.slice(0, 1);
    const cpu =
      program("cpu.usage").length ? program("cpu.usage") : program("cpu.user").concat(program("cpu.system"));
    add("CPU in use", cpu, "cores", true);
    add("Resident memory", program("memory.rss"), "bytes", true);
    metricsOf("gpu.busy", "gpu").forEach((row) => add("GPU " + row.key + " busy", [row], "share", true));
    COUNTERS.forEach(
      (row, at) => this.tracks.push({name: row.name, unit: "count", line: row.line, on: at < 4, counter: true}));
    metricsOf("memory.used", "gpu").forEach((row) => add("GPU " + row.key + " memory", [row], "bytes", false));
    add("Disk read", program("disk.read"), "bytes_per_s", false);
    add("Disk written", program("disk.write"), "bytes_per_s", false);
    metricsOf("net.received", "network").forEach((row) => add("Received " + row.label, [row], "bytes_per_s", false));
    metricsOf("net.sent", "network").forEach((row) => add("Sent " + row.label, [row], "bytes_per_s", false));
    add("Threads running", program("threads.running"), "count", false);
    add("Machine memory in use", one(metricsOf("memory.used", "system")), "bytes", false);
    add("Machine waiting for disks", one(metricsOf("cpu.iowait", "system")), "cores", false);
    let shown = 0;
    this.tracks.forEach((track) => {
      track.on = track.on && shown++ < UNDER_MOST;
    });
  },
  put() {
    this.find();
    if (this.tracks.length === 0) {
      byId("tracks").hidden = true;
      byId("under").hidden = true;
      return;
    }
    byId("tracks-list").append(...this.tracks.map((track) => {
      const box = el("input", {type: "checkbox", checked: track.on});
      box.addEventListener("change", () => {
        track.on = box.checked;
        timeline.draw();
      });
      return el("label", null, box, track.name);
    }));
  },
  // The mean as a line, the range as a band; a gap between samples is a gap; a counter holds until its next value.
  drawLine(g, line, y, low, high, colour, sampled) {
    const tall = UNDER_ROW - 24, place = (value) => y + UNDER_ROW - 5 - (value - low) / (high - low || 1) * tall;
    const first = Math.max(0, lastBefore(line.start, 0, line.n, timeline.from) - 1);
    const band = new Path2D(), mean = new Path2D(), under = new Path2D(), floor = place(low);
    let last = -Infinity, before = 0, height = 0;
    for (let at = first; at < line.n && (at === first || line.start[at - 1] <= timeline.to); at++) {
      const lasts = line.end[at] - line.start[at], x = timeline.x((line.start[at] + line.end[at]) / 2);
      const up = place(line.mean[at]), top = place(line.max[at]),
            gap = at === first || (sampled && line.start[at] - last > Math.max(2 * lasts, 1));
      if (gap)
        mean.moveTo(x, up);
      else {
        mean.lineTo(x, up);
        band.rect(before, top, x - before, Math.max(0.5, place(line.min[at]) - top));
        under.moveTo(before, floor);
        under.lineTo(before, height);
        under.lineTo(x, up);
        under.lineTo(x, floor);
      }
      [last, before, height] = [line.end[at], x, up];
    }
    g.fillStyle = g.strokeStyle = colour;
    g.globalAlpha = 0.10;
    if (sampled) g.fill(under);
    g.globalAlpha = 0.18;
    g.fill(band);
    g.globalAlpha = 1;
    g.lineWidth = 1.5;
    g.stroke(mean);
    g.lineWidth = 1;
  },
  drawTrack(g, track, y, colour) {
    const low = track.counter ? track.line.low : 0, high = track.line.high > low ? track.line.high : low + 1;
    const at = timeline.cursor, value = at === null ? null : valueAt(track.line, at);
    this.drawLine(g, track.line, y, low, high, colour, !track.counter);
    g.fillStyle = timeline.ink.ink;
    g.fillText(track.name, 8, y + 11);
    g.fillStyle = timeline.ink.muted;
    const said = value === null ? "max " + show(track.line.high, track.unit) : show(value, track.unit);
    g.textAlign = "right";
    g.fillText(said, timeline.width - 8, y + 11);
    g.textAlign = "left";
    g.fillStyle = timeline.ink.line;
    g.fillRect(0, y + UNDER_ROW - 1, timeline.width, 1);
  },
  draw() {
    const shown = this.tracks.filter((track) => track.on), canvas = byId("under");
    if (this.tracks.length === 0) return;
    canvas.hidden = shown.length === 0;
    const height = Math.max(1, shown.length * UNDER_ROW), g = fitCanvas(canvas, timeline.width, height);
    g.font = FONT;
    g.textBaseline = "middle";
    timeline.drawTicks(g, ticksOf(timeline.from, timeline.to, timeline.width / 110), height);
    timeline.drawShade(g, height);
    shown.forEach(
      (track, at) => this.drawTrack(g, track, at * UNDER_ROW, timeline.lines[track.counter ? 3 : at % 3]));
    timeline.drawCursor(g, height);
    timeline.drawSelecting(g, height);
    canvas.setAttribute("aria-label",
      "Charts under the timeline: " +
        shown.map((track) => track.name + ", at most " + show(track.line.high, track.unit)).join("; "));
  },
};
