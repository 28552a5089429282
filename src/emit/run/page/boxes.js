// boxes: the timeline's boxes, unpacked, and how to find them. A row is one level of one lane, in order of time.
const boxes = (function() {
  const packed = DATA.timeline, lanes = rowsOf(packed.lanes), names = packed.names, rows = [];
  let n = 0;
  for (let i = 0; i < packed.rows.length; i += 3) n += packed.rows[i + 2];
  const start = new Float64Array(n), end = new Float64Array(n), name = new Uint32Array(n), row = new Uint32Array(n);
  const calls = new Float64Array(n).fill(1), busy = new Float32Array(n).fill(1), mixed = new Uint8Array(n);
  const read = new Reader(packed.packed);
  lanes.forEach((lane) => {
    lane.rows = [];
  });
  for (let i = 0, at = 0; i < packed.rows.length; i += 3) {
    const lane = packed.rows[i], depth = packed.rows[i + 1], stop = at + packed.rows[i + 2];
    rows.push({lane, depth, first: at, end: stop});
    lanes[lane].rows[depth] = rows[rows.length - 1];
    for (let now = 0; at < stop; at++) {
      start[at] = now += read.varint();
      end[at] = now += read.varint();
      name[at] = read.varint();
      row[at] = rows.length - 1;
      const merged = read.varint();
      if (merged > 0) {
        calls[at] = Math.floor(merged / 2);
        mixed[at] = merged % 2;
        busy[at] = read.share();
      }
    }
  }
  let last = known(RUN.elapsed) ? RUN.elapsed : 0;
  rows.forEach((one) => {
    last = Math.max(last, end[one.end - 1]);
  });
  return {n, lanes, names, rows, start, end, name, row, calls, busy, mixed, last: last || 1};
})();

boxes.nameOf = (at) => boxes.names[boxes.name[at]] || "";
boxes.laneOf = (at) => boxes.lanes[boxes.rows[boxes.row[at]].lane];
boxes.busyOf = (at) => (boxes.end[at] - boxes.start[at]) * boxes.busy[at];
// The description of a box, in sentences.
boxes.linesOf = function(at) {
  const lasts = boxes.end[at] - boxes.start[at], calls = boxes.calls[at];
  const from = " from " + instant(boxes.start[at], Math.max(lasts, 1) / 10);
  if (calls <= 1) return [time(lasts) + from];
  return [
    exactly(calls) + " spans merged" + (boxes.mixed[at] ? ", most of the time in this one" : ""),
    time(boxes.busyOf(at)) + " in all, mean " + time(boxes.busyOf(at) / calls), "within " + time(lasts) + from
  ];
};
// The box of a row at an instant, or the nearest within `slack`; -1 if there is none.
boxes.at = function(row, instant, slack) {
  const before = lastBefore(boxes.start, row.first, row.end, instant);
  if (before >= row.first && boxes.end[before] + slack >= instant) return before;
  return before + 1 < row.end && boxes.start[before + 1] - slack <= instant ? before + 1 : -1;
};
// The box above, below or next to this one; -1 if there is none.
boxes.neighbour = function(at, direction) {
  const row = boxes.rows[boxes.row[at]], lane = boxes.lanes[row.lane];
  if (direction === "left") return at > row.first ? at - 1 : -1;
  if (direction === "right") return at + 1 < row.end ? at + 1 : -1;
  const other = lane.rows[row.depth + (direction === "up" ? -1 : 1)];
  if (!other) return -1;
  if (direction === "up") return boxes.at(other, boxes.start[at], 0);
  const found = lastBefore(boxes.start, other.first, other.end, boxes.start[at] - 1) + 1;
  return found < other.end && boxes.start[found] < boxes.end[at] ? found : -1;
};
