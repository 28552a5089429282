// timeline: lanes of boxes on a canvas, with level of detail: boxes narrower than a pixel are merged.
// By number of the state: other, running, ready, GIL, lock, disk, network, child, pipe, GPU; sleeping and others faint.
const STATE_FILLS = [
  null, "--fill-2", "--critical", "--line-1", "--line-3", "--line-4", "--line-0", "--fill-7", "--fill-4", "--fill-3"
];
const RULER = 24, LABEL = 19, ROW = 18, GAP = 9;
const FONT =
  '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", "DejaVu Sans", sans-serif';

// Ticks at 1, 2 or 5 times a power of ten, with enough space for their labels.
function ticksOf(from, to, most) {
  const rough = (to - from) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough * 0.999);
  const made = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-6; at += step)
    made.push(Math.abs(at) < step * 1e-6 ? 0 : at);
  return made;
}
// A label of the scale, with no more digits than the ticks need.
function tickLabel(ns, step) {
  if (ns === 0) return "0";
  const [size, unit] =
    [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([one]) => Math.abs(ns) >= one) || [1, "ns"];
  if (ns >= 100e9 && step >= 1e9) return time(ns);
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return (ns / size).toFixed(places) + " " + unit;
}

function fitCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// Columns of one pixel; equal neighbors are drawn as one rectangle. A box may extend into the next column.
class Columns {
  constructor(g, y, view) {
    Object.assign(this, {g, y, view, pixel: -1, covered: 0, next: 0, longest: 0, at: -1, hit: false, run: null});
  }
  add(left, right, at, hit) {
    const pixel = Math.max(0, Math.floor(left));
    if (pixel !== this.pixel) this.turn(pixel);
    const inside = Math.min(right, pixel + 1) - Math.max(left, pixel), weight = hit && this.view.wanted ? 1e3 : 1;
    this.covered += inside * boxes.busy[at];
    this.next += Math.max(0, right - pixel - 1) * boxes.busy[at];
    this.hit = this.hit || hit;
    if ((right - left + 1e-9) * weight > this.longest) [this.longest, this.at] = [(right - left + 1e-9) * weight, at];
  }
  turn(pixel) {
    if (this.pixel >= 0) {
      this.put(this.pixel, this.covered);
      if (this.next > 0.02 && pixel > this.pixel + 1) this.put(this.pixel + 1, Math.min(1, this.next));
    }
    const spilled = pixel === this.pixel + 1 ? this.next : 0;
    Object.assign(this, {pixel, covered: spilled, next: 0, longest: 0, hit: false});
  }
  put(pixel, covered) {
    const level = Math.ceil(Math.min(1, covered) * 8) / 8, colour = boxes.fills[boxes.name[this.at]], run = this.run;
    if (run && run.end === pixel && run.colour === colour && run.level === level && run.hit === this.hit) {
      run.end++;
      return;
    }
    this.flush();
    this.run = {from: pixel, end: pixel + 1, colour, level, hit: this.hit};
  }
  flush() {
    if (!this.run) return;
    this.g.globalAlpha = (0.3 + 0.7 * this.run.level) * (this.run.hit ? 1 : this.view.ink.dim);
    this.g.fillStyle = this.run.colour;
    this.g.fillRect(this.run.from, this.y, this.run.end - this.run.from, ROW - 1);
  }
  end() {
    this.turn(-1);
    this.flush();
  }
}

const timeline = {
  from: 0,
  to: boxes.last,
  width: 800,
  picked: -1,
  wanted: null,
  hits: null,
  finding: null,
  cursor: null,
  changed: [],
  x(at) { return (at - this.from) / (this.to - this.from) * this.width; },
  at(x) { return this.from + x / this.width * (this.to - this.from); },

  // ---- visible range ----------------------------------------------------------------------------
  look(from, to) {
    const least = Math.max(boxes.last * 1e-9, 20), span = Math.min(Math.max(to - from, least), boxes.last);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, 0), boxes.last - span);
    this.to = this.from + span;
    this.draw();
    this.changed.forEach((tell) => tell());
  },
  zoom(factor, x) {
    const fixed = this.at(x === undefined ? this.width / 2 : x);
    this.look(fixed - (fixed - this.from) * factor, fixed + (this.to - fixed) * factor);
  },
  move(share) {
    const span = this.to - this.from, by = Math.max(-this.from, Math.min(boxes.last - this.to, share * span));
    this.look(this.from + by, this.to + by);
  },
  goTo(from, to, mark) {
    const margin = Math.max((to - from) * 0.12, boxes.last * 1e-6);
    this.finding = mark ? [from, to] : null;
    this.look(from - margin, to + margin);
    byId("timeline").scrollIntoView({block: "start"});
    byId("lanes").focus({preventScroll: true});
  },

  // ---- layout -----------------------------------------------------------------------------------
  layOut() {
    let y = RULER + 4;
    boxes.lanes.forEach((lane) => {
      const levels = lane.folded ? Math.min(1, lane.rows.length) : lane.rows.length;
      lane.y = y;
      lane.levels = levels;
      y += LABEL + levels * ROW + GAP;
    });
    this.height = boxes.lanes.length ? y : RULER;
    const holder = byId("lanes"), seen = Math.min(this.height, Math.max(280, Math.min(560, innerHeight * 0.6)));
    holder.style.height = seen + "px";
    byId("lanes-height").style.height = Math.max(0, this.height - seen) + "px";
    this.seen = seen;
    this.width = holder.clientWidth;
  },
  fold(lane) {
    lane.folded = !lane.folded;
    this.layOut();
    this.draw();
  },
  rowAt(y) {
    const place = y + byId("lanes").scrollTop;
    const lane = boxes.lanes.find((one) => place >= one.y && place < one.y + LABEL + one.levels * ROW);
    if (!lane || y < RULER) return null;
    const depth = Math.floor((place - lane.y - LABEL) / ROW);
    return {lane, row: depth >= 0 ? lane.rows[depth] : null};
  },
  boxAt(x, y) {
    const found = this.rowAt(y);
    return found && found.row ? boxes.at(found.row, this.at(x), 2 * (this.to - this.from) / this.width) : -1;
  },
  showRow(at) {
    const row = boxes.rows[boxes.row[at]], lane = boxes.lanes[row.lane], holder = byId("lanes");
    if (lane.folded && row.depth > 0) this.fold(lane);
    const y = lane.y + LABEL + row.depth * ROW;
    if (y - holder.scrollTop < RULER + LABEL)
      holder.scrollTop = y - RULER - LABEL;
    else if (y + ROW - holder.scrollTop > this.seen)
      holder.scrollTop = y + ROW - this.seen + GAP;
  },

  // ---- drawing ----------------------------------------------------------------------------------
  theme() {
    this.ink = {
      ink: style("--ink"),
      muted: style("--muted"),
      line: style("--line"),
      surface: style("--surface"),
      sunk: style("--sunk"),
      box: style("--box-ink"),
      dim: Number(style("--dim")),
      hit: style("--hit"),
      shade: style("--shade"),
      accent: style("--accent")
    };
    const fills = Array.from({length: FILLS}, (_, at) => style("--fill-" + at));
    const [firstState, states] = boxes.states;
    boxes.fills = boxes.names.map((name, at) => {
      const state = at - firstState;
      return state >= 0 && state < states ? style(STATE_FILLS[state] || "--line") : fills[fillOf(name)];
    });
    this.lines = [0, 1, 2, 3, 4, 5].map((at) => style("--line-" + at));
  },
  drawRuler(g, height) {
    const ticks = ticksOf(this.from, this.to, this.width / 110),
          step = ticks.length > 1 ? ticks[1] - ticks[0] : this.to - this.from;
    g.fillStyle = this.ink.surface;
    g.fillRect(0, 0, this.width, RULER);
    g.fillStyle = this.ink.muted;
    g.font = FONT;
    g.textBaseline = "middle";
    ticks.forEach((at) => {
      const x = Math.round(this.x(at)) + 0.5;
      g.fillText(tickLabel(at, step), x + 4, RULER / 2 + 1);
      g.fillRect(x - 0.5, 0, 1, RULER);
    });
    g.fillStyle = this.ink.line;
    g.fillRect(0, RULER - 1, this.width, 1);
    return ticks;
  },
  drawTicks(g, ticks, height) {
    g.fillStyle = this.ink.line;
    ticks.forEach((at) => g.fillRect(Math.round(this.x(at)), 0, 1, height));
  },
  drawShade(g, height) {
    if (!this.finding) return;
    const left = this.x(this.finding[0]), right = this.x(this.finding[1]);
    g.fillStyle = this.ink.shade;
    g.fillRect(left, 0, Math.max(2, right - left), height);
    g.fillStyle = this.ink.accent;
    [left, right].forEach((x) => g.fillRect(Math.round(x), 0, 1, height));
  },
  // Boxes of a row. Boxes narrower than two pixels are drawn as columns of one pixel, with the share of the pixel's
  // time that is covered as opacity and the color of the longest: a million spans produce no artificial patterns.
  drawRow(g, row, y) {
    const {start, end, name} = boxes, scale = this.width / (this.to - this.from), hits = this.wanted;
    const thin = new Columns(g, y, this);
    let at = Math.max(row.first, lastBefore(start, row.first, row.end, this.from));
    for (; at < row.end && start[at] < this.to; at++) {
      const left = (start[at] - this.from) * scale, right = (end[at] - this.from) * scale;
      if (right < 0) continue;
      const hit = !hits || hits[name[at]];
      if (right - left < 2)
        thin.add(left, right, at, hit);
      else
        this.drawBox(g, at, Math.max(left, -4), Math.min(right, this.width + 4), y, hit);
    }
    thin.end();
    g.globalAlpha = 1;
  },
  drawBox(g, at, left, right, y, hit) {
    const wide = right - left, drawn = wide > 3 ? wide - 0.7 : wide;
    g.globalAlpha = hit ? 1 : this.ink.dim;
    g.fillStyle = boxes.fills[boxes.name[at]];
    g.fillRect(left, y, drawn, ROW - 1);
    if (boxes.calls[at] > 1 && wide > 6) this.drawMerged(g, left, y, drawn, at);
    if (hit && this.wanted && wide > 3) {
      g.strokeStyle = this.ink.hit;
      g.strokeRect(left + 0.5, y + 0.5, drawn - 1, ROW - 2);
    }
    if (wide > 26) this.drawLabel(g, at, left, y, wide);
  },
  // Merged spans: a lighter box, filled by the share of its time that they took.
  drawMerged(g, left, y, wide, at) {
    const before = g.globalAlpha, free = Math.max(0, Math.min(1, 1 - boxes.busy[at])) * (ROW - 1);
    g.globalAlpha = before * 0.55;
    g.fillStyle = this.ink.surface;
    g.fillRect(left, y, wide, free);
    g.globalAlpha = before;
  },
  drawLabel(g, at, left, y, wide) {
    const from = Math.max(left, 0) + 5, room = Math.min(left + wide, this.width) - from - 4;
    if (room < 16) return;
    const calls = boxes.calls[at], text = boxes.nameOf(at) + (calls > 1 ? " ×" + count(calls) : "");
    const fits = this.fitText(g, text, room);
    if (!fits) return;
    g.fillStyle = calls > 1 && boxes.busy[at] < 0.5 ? this.ink.ink : this.ink.box;
    g.fillText(fits, from, y + ROW / 2);
  },
  fitText(g, text, room) {
    const each = 5.9;
    if (text.length * each * 1.5 <= room || g.measureText(text).width <= room) return text;
    let keep = Math.floor(room / each);
    while (keep > 2 && g.measureText(text.slice(0, keep) + "…").width > room) keep--;
    return keep > 2 ? text.slice(0, keep) + "…" : "";
  },
  drawLane(g, lane, top) {
    const y = lane.y - top;
    g.fillStyle = this.ink.muted;
    g.fillText((lane.folded ? "▸ " : "▾ ") + lane.name + "  ·  " + plural(lane.spans, lane.sampled ? "stack sample" : "span"), 8, y + LABEL / 2 + 1);
    for (let depth = 0; depth < lane.levels; depth++) {
      const place = y + LABEL + depth * ROW;
      if (lane.rows[depth] && place + ROW > RULER && place < this.seen) this.drawRow(g, lane.rows[depth], place);
    }
  },
  drawPicked(g, top) {
    if (this.picked < 0) return;
    const row = boxes.rows[boxes.row[this.picked]], lane = boxes.lanes[row.lane];
    if (row.depth >= lane.levels) return;
    const left = Math.max(-4, this.x(boxes.start[this.picked])),
          right = Math.min(this.width + 4, this.x(boxes.end[this.picked]));
    g.strokeStyle = this.ink.ink;
    g.lineWidth = 2;
    g.strokeRect(left - 1, lane.y - top + LABEL + row.depth * ROW - 1, Math.max(right - left, 2) + 2, ROW + 1);
    g.lineWidth = 1;
  },
  drawCursor(g, height) {
    if (this.cursor === null) return;
    g.fillStyle = this.ink.muted;
    g.fillRect(Math.round(this.x(this.cursor)), 0, 1, height);
  },
  drawSelecting(g, height) {
    if (!this.selecting) return;
    const [a, b] = this.selecting.map((at) => this.x(at));
    g.fillStyle = this.ink.shade;
    g.fillRect(Math.min(a, b), 0, Math.abs(b - a), height);
    g.fillStyle = this.ink.accent;
    [a, b].forEach((x) => g.fillRect(x, 0, 1, height));
  },
  drawLanes() {
    const top = byId("lanes").scrollTop, g = fitCanvas(byId("lanes-canvas"), this.width, this.seen);
    const ticks = ticksOf(this.from, this.to, this.width / 110);
    g.font = FONT;
    g.textBaseline = "middle";
    this.drawTicks(g, ticks, this.seen);
    this.drawShade(g, this.seen);
    boxes.lanes.forEach((lane) => {
      const y = lane.y - top;
      if (y < this.seen && y + LABEL + lane.levels * ROW > RULER) this.drawLane(g, lane, top);
    });
    this.drawPicked(g, top);
    this.drawCursor(g, this.seen);
    this.drawRuler(g);
    this.drawSelecting(g, this.seen);
  },
};
timeline.draw = onceAFrame(() => {
  timeline.drawLanes();
  overview.draw();
  under.draw();
});

// ---- overview: how busy the lanes were over the whole run, and the visible range of the timeline -
const overview = {
  bins: null,
  fill(n) {
    const sums = new Float64Array(n), each = boxes.last / n;
    // Without spans: threads that run. Tables of states have "running" second.
    const spans = boxes.rows.some((row) => !boxes.lanes[row.lane].sampled), running = boxes.states[0] + 1;
    const wanted = (row) => row.depth === 0 && boxes.lanes[row.lane].sampled !== spans;
    boxes.rows.filter(wanted).forEach((row) => {
      for (let at = row.first; at < row.end; at++) {
        if (!spans && boxes.name[at] !== running) continue;
        const first = Math.min(n - 1, Math.floor(boxes.start[at] / each)),
              last = Math.min(n - 1, Math.floor(boxes.end[at] / each));
        for (let bin = first; bin <= last; bin++) {
          const inside = Math.min(boxes.end[at], (bin + 1) * each) - Math.max(boxes.start[at], bin * each);
          sums[bin] += inside * boxes.busy[at] / each;
        }
      }
    });
    this.bins = sums;
    this.most = sums.reduce((most, one) => Math.max(most, one), 1e-9);
  },
  draw() {
    const canvas = byId("overview"), height = 34, width = timeline.width, n = Math.max(1, Math.floor(width / 2));
    const g = fitCanvas(canvas, width, height), scale = width / boxes.last;
    if (!this.bins || this.bins.length !== n) this.fill(n);
    g.fillStyle = timeline.lines[0];
    g.globalAlpha = 0.55;
    this.bins.forEach((sum, bin) => {
      const tall = sum / this.most * (height - 8);
      g.fillRect(bin * width / n, height - tall, width / n, tall);
    });
    g.globalAlpha = 1;
    FINDINGS.forEach((row) => {
      if (!known(row.from) || !known(row.to)) return;
      g.fillStyle = style("--" + SEVERITIES[row.severity][0]);
      g.fillRect(row.from * scale, 0, Math.max(2, (row.to - row.from) * scale), 3);
    });
    const left = timeline.from * scale, right = timeline.to * scale;
    g.fillStyle = timeline.ink.surface;
    g.globalAlpha = 0.7;
    g.fillRect(0, 0, left, height);
    g.fillRect(right, 0, width - right, height);
    g.globalAlpha = 1;
    g.fillStyle = timeline.ink.accent;
    g.fillRect(Math.max(0, left - 1), 0, 2, height);
    g.fillRect(Math.min(width - 2, right - 1), 0, 2, height);
  },
};
const FINDINGS = rowsOf(DATA.findings);
