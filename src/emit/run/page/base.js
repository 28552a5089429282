// base: the page's data, number formatting, elements, colors. Names are added as text only, never as markup.
const byId = (id) => document.getElementById(id);
const DATA = JSON.parse(byId("data").textContent);

// ---- tables of the data: rows as objects --------------------------------------------------------
const nameOf = (column) => column.replace(/_ns$/, "");  // all times are nanoseconds
// The same in a table, which may have a column of the shorter name as well.
const nameIn = (table, column) => table.columns.includes(nameOf(column)) ? column : nameOf(column);
function rowsOf(table) {
  const names = table.columns.map((column) => nameIn(table, column));
  return table.rows.map((row) => {
    const made = {};
    names.forEach((name, at) => {
      made[name] = row[at] === undefined ? null : row[at];
    });
    return made;
  });
}
// The same for a table of one row, with its parts.
function oneOf(row) {
  if (row === null || typeof row !== "object" || Array.isArray(row)) return row;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [nameOf(name), oneOf(value)]));
}

// The span tree.
const SPANS = rowsOf(DATA.spans);
SPANS.forEach((row) => {
  row.children = [];
  if (row.parent !== null) SPANS[row.parent].children.push(row);
});
// The parts of a step: its phases at any depth if it has some, else its direct children.
function phasesIn(row) {
  return row.children.flatMap(
    (child) => child.kind === "phase" ? [child] : child.kind === "step" ? [] : phasesIn(child));
}
const STEP_ROWS = SPANS.filter((row) => row.kind === "step"), PHASED = new Set();
STEP_ROWS.forEach((row) => {
  row.phases = phasesIn(row);
  if (row.phases.length > 0) PHASED.add(row.name);
});
const partsOf = (step) => PHASED.has(step.name) ? step.phases : step.children;

// ---- elements -----------------------------------------------------------------------------------
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on")
      Object.entries(value).forEach(([event, act]) => element.addEventListener(event, act));
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const na = (reason) => el("span", {class: "na", title: reason || "not available for this run"}, "n/a");
const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

// ---- number formatting --------------------------------------------------------------------------
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}
function scaled(value, steps) {
  const size = Math.abs(value);
  let at = 0;
  while (at + 1 < steps.length && size >= steps[at + 1][0] * 0.9995) at++;
  const whole = at === 0 && Number.isInteger(value);
  return (whole ? value : digits(value / steps[at][0])) + " " + steps[at][1];
}
// An instant of the run, precise enough to distinguish it from others at a distance of `apart`.
function instant(ns, apart) {
  if (ns === 0) return "0";
  const size = Math.max(Math.abs(ns), apart);
  const [one, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([least]) => size >= least) || [1, "ns"];
  const places = Math.ceil(Math.log10(one / Math.max(apart, 1)) + 1);
  return (ns / one).toFixed(Math.max(0, Math.min(9, places))) + " " + unit;
}
const two = (value) => String(value).padStart(2, "0");
function time(ns) {
  const seconds = Math.abs(ns) / 1e9, sign = ns < 0 ? "−" : "";
  if (ns === 0) return "0 s";
  if (seconds < 99.95) return scaled(ns, [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]]);
  const whole = Math.round(seconds);
  if (whole < 3600) return sign + Math.floor(whole / 60) + "m " + two(whole % 60) + "s";
  if (whole < 86400) return sign + Math.floor(whole / 3600) + "h " + two(Math.floor(whole / 60) % 60) + "m";
  return sign + Math.floor(whole / 86400) + "d " + two(Math.floor(whole / 3600) % 24) + "h";
}
const bytes = (value) => scaled(Math.abs(value) < 1024 ? Math.round(value) : value,
  [[1, "B"], [1024, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"], [2 ** 50, "PiB"]]);
function count(value) {
  const size = Math.abs(value);
  if (size < 100000) {
    if (Number.isInteger(value) || size >= 1000) return exactly(Math.round(value));
    return size !== 0 && size < 0.01 ? value.toPrecision(3) : digits(value);
  }
  return scaled(value, [
    [1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"], [1e15, "P"]
  ]).replace(/ (?=[kMGTP]$)/, "");
}
// Not toLocaleString: loading its data takes a tenth of a second.
const exactly = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
function percent(share) {
  const value = share * 100;
  if (value > 0 && value < 0.1) return "<0.1 %";
  return (Math.abs(value) >= 99.95 ? value.toFixed(0) : value.toFixed(1)) + " %";
}
const UNITS = {
  "count": count,
  "bytes": bytes,
  "share": percent,
  "cores": (v) => digits(v) + (v === 1 ? " core" : " cores"),
  "seconds": (v) => time(v * 1e9),
  "celsius": (v) => v.toFixed(v < 100 ? 1 : 0) + " °C",
  "watts": (v) => digits(v) + " W",
  "joules": (v) => scaled(v, [[1, "J"], [1e3, "kJ"], [1e6, "MJ"]]),
  "hertz": (v) => scaled(v, [[1, "Hz"], [1e3, "kHz"], [1e6, "MHz"], [1e9, "GHz"]]),
  "bits": (v) => "0x" + Math.round(v).toString(16),
  "bytes_per_s": (v) => bytes(v) + "/s",
  "per_s": (v) => count(v) + "/s",
  "flops_per_s": (v) => count(v) + "FLOP/s",
  "ns": time,
};
const show = (value, unit) => (UNITS[unit] || count)(value);
const plural = (n, one, many) => exactly(n) + " " + (n === 1 ? one : many || one + "s");

// ---- packed numbers -----------------------------------------------------------------------------
function unpack(text) {
  const coded = atob(text), out = new Uint8Array(coded.length);
  for (let i = 0; i < coded.length; i++) out[i] = coded.charCodeAt(i);
  return out;
}
class Reader {
  constructor(text) {
    this.bytes = unpack(text);
    this.at = 0;
  }
  varint() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    return value;
  }
  share() {
    const value = this.bytes[this.at] | this.bytes[this.at + 1] << 8;
    this.at += 2;
    return value / 65535;
  }
}
// Points of a line: start, end, min, mean, max.
function pointsOf(packed) {
  const n = packed.n, read = new Reader(packed.packed), range = packed.high - packed.low;
  const made = {
    n,
    start: new Float64Array(n),
    end: new Float64Array(n),
    min: new Float64Array(n),
    mean: new Float64Array(n),
    max: new Float64Array(n),
    low: packed.low,
    high: packed.high
  };
  let at = 0;
  for (let i = 0; i < n; i++) {
    made.start[i] = at += read.varint();
    made.end[i] = at += read.varint();
    made.min[i] = packed.low + read.share() * range;
    made.mean[i] = packed.low + read.share() * range;
    made.max[i] = packed.low + read.share() * range;
  }
  return made;
}
// The last of the ascending starts from `first` to `end` that is at or before `at`; first - 1 if there is none.
function lastBefore(starts, first, end, at) {
  let low = first, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}
function valueAt(points, at) {
  const found = lastBefore(points.start, 0, points.n, at);
  const slack = found < 0 ? 0 : Math.max(points.end[found] - points.start[found], 0);
  return found < 0 || at > points.end[found] + slack ? null : points.mean[found];
}

// ---- colors: fills that are distinguishable with any color vision, all under dark text ----------
const FILLS = 10;  // --fill-0 and so on of the style; the last is for everything without its own color
const OTHERS = FILLS - 1;
// The parts of a step get a color each, since they are shown side by side; then the spans with the most self time.
const fillOf = (function() {
  const known = new Map(), parts = new Map(), selves = new Map();
  const add = (sums, name, value) => sums.set(name, (sums.get(name) || 0) + (value || 0));
  const largest = (sums) => [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  SPANS.forEach((row) => {
    add(selves, row.name, row.self);
  });
  STEP_ROWS.forEach((step) => partsOf(step).forEach((row) => add(parts, row.name, row.total)));
  const names = new Set(largest(parts).slice(0, 7).concat(largest(selves)));
  [...names].slice(0, OTHERS).forEach((name, at) => known.set(name, at));
  return (name) => {
    let found = known.get(name);
    if (found === undefined) {
      let hash = 7;
      for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
      found = hash % OTHERS;
      known.set(name, found);
    }
    return found;
  };
})();
const fillStyle = (fill) => "var(--fill-" + fill + ")";
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- tooltip ------------------------------------------------------------------------------------
const tip = {
  show(x, y, title, lines) {
    const box = byId("tip");
    box.replaceChildren(el("b", null, title), ...lines.filter(Boolean).map((line) => el("span", null, line)));
    box.hidden = false;
    const width = box.offsetWidth, height = box.offsetHeight;
    box.style.left = Math.max(8, x + 14 + width > innerWidth ? x - 14 - width : x + 14) + "px";
    box.style.top = Math.max(8, y + 16 + height > innerHeight ? y - 12 - height : y + 16) + "px";
  },
  hide() { byId("tip").hidden = true; },
};

// Draws at most once per frame, however often it is requested.
function onceAFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
// Callbacks for a change of the theme, for everything that draws with its colors.
const themed = [];
