// boxes: the timeline's boxes, unpacked, and how to find them. A row is one level of one lane, in order of time. Lanes of
// stack samples have boxes as those of spans: the state, the innermost function of own code; and stacks, to look up.
const boxes = (function() {
  const packed = DATA.timeline, sampled = packed.sampled, spanLanes = rowsOf(packed.lanes);
  const sampledLanes = sampled ? rowsOf(sampled.lanes) : [], lanes = [...spanLanes, ...sampledLanes], rows = [];
  const names = sampled ? [...packed.names, ...sampled.names] : packed.names;
  let n = 0;
  const isStacks = (part, i) => part === sampled && part.rows[i + 1] === 2;
  for (const part of [packed, sampled])
    for (let i = 0; part && i < part.rows.length; i += 3) n += isStacks(part, i) ? 0 : part.rows[i + 2];
  const start = new Float64Array(n), end = new Float64Array(n), name = new Uint32Array(n), row = new Uint32Array(n);
  const calls = new Float64Array(n).fill(1), busy = new Float32Array(n).fill(1), mixed = new Uint8Array(n);
  lanes.forEach((lane, at) => {
    lane.rows = [];
    lane.sampled = at >= spanLanes.length;
  });
  let at = 0;
  const unpackStacks = (read, count) => {
    const stacks = {first: 0, end: count, at: new Float64Array(count), until: [], frame: []};
    for (let i = 0, now = 0; i < count; i++) {
      stacks.at[i] = now += read.varint();
      stacks.until.push(now += read.varint());
      stacks.frame.push(read.varint());
      if (read.varint() > 0) read.share();
    }
    return stacks;
  };
  const unpack = (part, firstLane, firstName) => {
    const read = new Reader(part.packed);
    for (let i = 0; i < part.rows.length; i += 3) {
      const lane = firstLane + part.rows[i], depth = part.rows[i + 1], stop = at + part.rows[i + 2];
      if (isStacks(part, i)) {
        lanes[lane].stacks = unpackStacks(read, part.rows[i + 2]);
        continue;
      }
      rows.push({lane, depth, first: at, end: stop});
      lanes[lane].rows[depth] = rows[rows.length - 1];
      for (let now = 0; at < stop; at++) {
        start[at] = now += read.varint();
        end[at] = now += read.varint();
        name[at] = firstName + read.varint();
        row[at] = rows.length - 1;
        const merged = read.varint();
        if (merged > 0) {
          calls[at] = Math.floor(merged / 2);
          mixed[at] = merged % 2;
          busy[at] = read.share();
        }
      }
    }
  };
  unpack(packed, 0, 0);
  if (sampled) unpack(sampled, spanLanes.length, packed.names.length);
  // The samples of a thread follow its spans.
  const order = [];
  spanLanes.forEach((lane, number) => {
    order.push(number);
    sampledLanes.forEach((other, at) => {
      const same = other.pid === lane.pid && other.tid === lane.tid && known(lane.tid);
      if (same && !order.includes(spanLanes.length + at)) order.push(spanLanes.length + at);
    });
  });
  sampledLanes.forEach((_, at) => {
    if (!order.includes(spanLanes.length + at)) order.push(spanLanes.length + at);
  });
  rows.forEach((one) => {
    one.lane = order.indexOf(one.lane);
  });
  let last = known(RUN.elapsed) ? RUN.elapsed : 0;
  rows.forEach((one) => {
    last = Math.max(last, end[one.end - 1]);
  });
  return {
    n, lanes: order.map((at) => lanes[at]), names, rows, start, end, name, row, calls, busy, mixed, last: last || 1,
    states: sampled ? [packed.names.length, sampled.states] : [names.length, 0], sampled: sampledLanes.length
  };
})();

boxes.nameOf = (at) => boxes.names[boxes.name[at]] || "";
boxes.laneOf = (at) => boxes.lanes[boxes.rows[boxes.row[at]].lane];
boxes.busyOf = (at) => (boxes.end[at] - boxes.start[at]) * boxes.busy[at];
// The description of a box, in sentences.
boxes.linesOf = function(at) {
  const lasts = boxes.end[at] - boxes.start[at], calls = boxes.calls[at];
  const from = " from " + instant(boxes.start[at], Math.max(lasts, 1) / 10);
  if (calls <= 1) return [time(lasts) + from];
  if (boxes.laneOf(at).sampled)
    return [time(boxes.busyOf(at)) + " of " + time(lasts) + from, boxes.mixed[at] ? "merged with others" : "with gaps"];
  return [
    exactly(calls) + " spans merged" + (boxes.mixed[at] ? ", most of the time in this one" : ""),
    time(boxes.busyOf(at)) + " in all, mean " + time(boxes.busyOf(at) / calls), "within " + time(lasts) + from
  ];
};
// The stack of a sampled thread at an instant, innermost first: [text, line].
boxes.stackAt = function(lane, instant) {
  const packed = DATA.timeline.sampled, stacks = lane.stacks;
  const found = stacks ? lastBefore(stacks.at, 0, stacks.end, instant) : -1;
  if (found < 0 || stacks.until[found] < instant) return [];
  if (!boxes.frames) {
    const read = new Reader(packed.packed_frames);
    boxes.frames = Array.from({length: packed.frames}, () => [read.varint(), read.varint(), read.varint()]);
  }
  const list = [];
  for (let at = stacks.frame[found]; at > 0; at = boxes.frames[at][0])
    list.push([packed.functions[boxes.frames[at][2]], boxes.frames[at][1]]);
  return list.length ? list : [[packed.functions[0], 0]];
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
