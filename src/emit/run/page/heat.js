// heat: how busy each CPU and each thread was over the run: one strip each, darker if it was busier.
const HEAT = {
  most: 420,   // pixels, of all strips of a chart together
  tallest: 15,
  label: 12  // pixels that a name needs
};

function stripsOf(table) {
  return rowsOf(table).map((row) => ({...row, cells: unpack(row.cells)}));
}
const heatShare = (cell) => cell === 0 ? null : (cell - 1) / 254;
function heatMean(strip) {
  const seen = [...strip.cells].filter((cell) => cell > 0);
  return seen.length > 0 ? seen.reduce((sum, cell) => sum + heatShare(cell), 0) / seen.length : null;
}
// One pixel per cell, stretched by CSS.
function drawHeat(canvas, strips) {
  const ink = canvas.getContext("2d"), probe = el("i");
  probe.style.color = "var(--heat)";
  document.body.append(probe);
  const [red, green, blue] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
  probe.remove();
  const picture = ink.createImageData(canvas.width, canvas.height);
  strips.forEach((strip, row) => strip.cells.forEach((cell, at) => {
    const share = heatShare(cell), to = (row * canvas.width + at) * 4;
    picture.data.set([red, green, blue, share === null ? 0 : Math.round(14 + 241 * share)], to);
  }));
  ink.putImageData(picture, 0, 0);
}
function hoverHeat(canvas, strips, name) {
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / box.height * strips.length);
    const at = Math.floor((event.clientX - box.left) / box.width * canvas.width), strip = strips[row];
    if (!strip || at < 0 || at >= canvas.width) {
      tip.hide();
      return;
    }
    const share = heatShare(strip.cells[at]), when = (at + 0.5) / canvas.width * RUN.elapsed;
    tip.show(event.clientX, event.clientY, name(strip),
      ["at " + time(when), share === null ? "n/a: no sample then" : percent(share) + " of a core"]);
  });
  canvas.addEventListener("pointerleave", () => tip.hide());
}
function putHeatAxis() {
  const elapsed = RUN.elapsed, ticks = ticksOf(0, elapsed, 8), axis = el("div", {class: "heat-axis"});
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : elapsed;
  ticks.forEach((at) => {
    const label = el("span", {class: at === 0 ? "first" : null}, tickLabel(at, step));
    label.style.left = at / elapsed * 100 + "%";
    axis.append(label);
  });
  return axis;
}
function putHeatChart(table, title, name, more) {
  const strips = stripsOf(table);
  if (strips.length === 0) return null;
  const tall = Math.max(2, Math.min(HEAT.tallest, Math.floor(HEAT.most / strips.length)));
  const every = Math.ceil(HEAT.label / tall);
  const said = strips.slice(0, 16).map((strip) => name(strip) + " " + percent(heatMean(strip) || 0)).join(", ");
  const canvas = el("canvas", {
    width: strips[0].cells.length,
    height: strips.length,
    role: "img",
    "aria-label": title + ", mean share of a core: " + said + (strips.length > 16 ? ", …" : "") + "."
  });
  canvas.style.height = strips.length * tall + "px";
  const names = el("div", {class: "heat-names", "aria-hidden": "true"}, strips.map((strip, at) => {
    const label = el("span", {title: name(strip)}, at % every === 0 ? name(strip) : "");
    label.style.height = tall + "px";
    label.style.lineHeight = tall + "px";
    return label;
  }));
  const draw = () => drawHeat(canvas, strips);
  draw();
  themed.push(draw);
  hoverHeat(canvas, strips, name);
  const left = table.left_out > 0 && el("span", {class: "muted"}, "and " + exactly(table.left_out) + " more " + more);
  return el("figure", {class: "chart heat"},
    el("figcaption", null, el("h3", null, title),
      el("span", {class: "key"}, "idle", el("i", {class: "scale"}), "busy"), left),
    el("div", {class: "heat-body"}, names, el("div", null, canvas, putHeatAxis())));
}
function putHeat() {
  const pids = new Set(DATA.thread_strips.rows.map((row) => row[1]));
  const thread = (strip) => (strip.label || "thread") + " (" + strip.key + ")" +
    (pids.size > 1 && strip.owner !== strip.key ? " of " + strip.owner : "");
  byId("charts").append(...[
    putHeatChart(DATA.cpu_strips, "Each CPU of the machine", (strip) => "CPU " + strip.key, "CPUs"),
    putHeatChart(DATA.thread_strips, "Each thread, the busiest first", thread, "in the tables")
  ].filter(Boolean));
}
