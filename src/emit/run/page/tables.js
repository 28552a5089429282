// tables: every table of the run, sortable and filterable. What is absent says why.
const ROWS_FIRST = 200;
const TIME = time, NUMBER = (value) => typeof value === "number" ? exactly(value) : value;
const col = (key, label, format, more) => ({key, label, format, number: true, ...more});
const text = (key, label, more) => ({key, label, format: (value) => String(value), number: false, ...more});
const EACH = [col("p50", "p50", TIME), col("p95", "p95", TIME), col("p99", "p99", TIME), col("max", "max", TIME)];
const place = (row) => row.file ? row.file + (row.line ? ":" + row.line : "") : null;
const noPlace = "call site not recorded";
const metricUnit = (value, row) => show(value, row.unit);

const TABLES = [
  {
    id: "spans",
    label: "Spans",
    rows: () => SPANS,
    tree: true,
    columns: [
      text("name", "Span"), col("calls", "calls", NUMBER), col("total", "total", TIME),
      col("self", "self", TIME, {title: "total without callees and recording overhead"}),
      col("share", "share", percent, {bar: true}), col("mean", "mean", TIME), ...EACH, text("kind", "kind"),
      text("file", "where", {value: place, reason: noPlace})
    ]
  },
  {
    id: "steps",
    label: "Steps",
    rows: () => rowsOf(DATA.steps),
    columns: [
      text("name", "Step"), col("count", "finished", NUMBER), col("unfinished", "unfinished", NUMBER),
      col("total", "total", TIME), col("mean", "mean", TIME), ...EACH,
      col("per_second", "per second", count, {reason: "too few"}), col("first", "first", TIME),
      col("rest_p50", "p50 of the others", TIME, {reason: "there is only one"})
    ]
  },
  {
    id: "epochs",
    label: "Epochs",
    rows: () => rowsOf(DATA.epochs),
    columns: [
      text("name", "Epoch"), col("count", "finished", NUMBER), col("unfinished", "unfinished", NUMBER),
      col("total", "total", TIME), col("mean", "mean", TIME), ...EACH, col("first", "first", TIME)
    ]
  },
  {
    id: "aggregates",
    label: "Aggregates",
    rows: () => rowsOf(DATA.aggregates),
    columns: [
      text("name", "Span"), col("calls", "calls", NUMBER), col("timed", "timed", NUMBER),
      col("total", "total", (value, row) => (row.estimated ? "≈ " : "") + time(value), {reason: "no call was timed"}),
      col("mean", "mean", TIME, {reason: "no call was timed"}),
      ...EACH.map((one) => ({...one, reason: "no call was timed"})),
      text("file", "where", {value: place, reason: noPlace})
    ]
  },
  {
    id: "tracks",
    label: "Tracks",
    rows: () => rowsOf(DATA.tracks),
    columns: [
      text("name", "Span"), text("track", "track", {reason: "the recording thread"}), text("track_kind", "kind"),
      col("calls", "calls", NUMBER),
      col("total", "total", TIME), col("mean", "mean", TIME), ...EACH
    ]
  },
  {
    id: "counters",
    label: "Counters",
    rows: () => rowsOf(DATA.counters),
    columns: [
      text("name", "Counter"), col("count", "values", NUMBER),
      ...["first", "last", "min", "mean", "max"].map((key) => col(key, key, count)), col("first_at", "from", TIME),
      col("last_at", "to", TIME)
    ]
  },
  {
    id: "marks",
    label: "Marks",
    rows: () => rowsOf(DATA.marks),
    columns: [
      text("name", "Mark"), col("count", "times", NUMBER), col("first_at", "first at", TIME),
      col("last_at", "last at", TIME)
    ]
  },
  {
    id: "threads",
    label: "Threads",
    rows: () => rowsOf(DATA.threads),
    columns: [
      text("name", "Thread", {reason: "the thread had no name"}), col("tid", "id", String),
      text("process", "process", {value: processOf}), col("spans", "spans", NUMBER), col("busy", "in spans", TIME),
      col("first_at", "from", TIME, {reason: "no events were read"}),
      col("last_at", "to", TIME, {reason: "no events were read"}), col("dropped_spans", "dropped", NUMBER)
    ]
  },
  {
    id: "processes",
    label: "Processes",
    rows: () => PROCESSES,
    columns: [
      text("label", "Process"), col("pid", "pid", String), col("parent_pid", "parent", String),
      col("cpu", "CPU", TIME, {reason: unsampled}), col("memory", "peak memory", bytes, {reason: unsampled}),
      col("read", "disk read", bytes, {reason: unsampled}), col("written", "written", bytes, {reason: unsampled}),
      col("threads", "threads", NUMBER, {reason: seen}), col("spans", "spans", NUMBER, {reason: seen}),
      col("busy", "in spans", TIME, {reason: seen}), col("joined_at", "from", TIME), col("left_at", "to", TIME),
      col("wait_status", "ended", waited, {reason: "exit status not observed"}),
      text("why", "note", {reason: "no note", blank: true})
    ]
  },
  {
    id: "metrics",
    label: "Metrics",
    rows: () => METRICS.filter((row) => !row.derived),
    columns: [
      text("metric", "Metric", {title: "what was sampled"}), text("subject", "of", {value: whose}),
      ...["min", "mean", "max"].map((key) => col(key, key, metricUnit, {reason: whyAbsent})),
      col("max_at", "max at", TIME, {reason: whyAbsent}),
      col("total", "total", (value, row) => show(value, row.total_unit), {reason: "only for totals"}),
      col("n", "samples", NUMBER)
    ]
  },
];
const PROCESSES = rowsOf(DATA.processes);
PROCESSES.forEach((row) => {
  const used = processes.get(row.pid) || {}, total = (metric) => used[metric] && used[metric].total,
        most = used["memory.rss_peak"] || used["memory.rss"];
  row.why = row.joined ? row.unreadable : row.not_joined;
  if (!row.joined) row.threads = row.spans = row.busy = null;
  row.cpu =
    known(total("cpu.user")) && known(total("cpu.system")) ? (total("cpu.user") + total("cpu.system")) * 1e9 : null;
  row.memory = most ? most.max : null;
  row.read = total("disk.read");
  row.written = total("disk.write");
});
function unsampled(row) { return "sampled at most once" + (row.pid ? "" : ", its id is unknown"); }
function processOf(row) {
  const one = row.process === null ? null : PROCESSES[row.process];
  return one ? (one.label || "process") + " (" + (one.pid || "?") + ")" : null;
}
function whose(row) {
  const label = row.label && row.label !== row.subject ? " " + row.label : "";
  if (row.subject === "process" || row.subject === "thread") return row.subject + label + " (" + row.key + ")";
  return row.subject + (row.subject === "gpu" || row.subject === "cpu" ? " " + row.key : "") + label;
}
function seen(row) { return row.why || "seen, not recorded"; }
function whyAbsent(row) { return row.absent || "no sample"; }
function waited(status) { return (status & 127) === 0 ? "status " + (status >> 8) : "signal " + (status & 127); }

// ---- cells --------------------------------------------------------------------------------------
function valueIn(column, row) { return column.value ? column.value(row) : row[column.key]; }
function cell(column, row, first, table) {
  const value = valueIn(column, row), missing = value === null || value === undefined || value === "";
  const reason = typeof column.reason === "function" ? column.reason(row) : column.reason;
  const said = missing ? (column.blank ? "" : na(reason)) : column.format(value, row);
  if (first) {
    const made = el("th", {scope: "row", title: row.what || null}, said, flawOf(row));
    if (table.tree && !table.sorted && row.depth > 0)
      made.style.paddingLeft = 12 + Math.min(row.depth, 24) * 14 + "px";
    return made;
  }
  if (column.bar && !missing) {
    const bar = el("i", {"aria-hidden": "true"});
    bar.style.width = "calc((100% - 12px) * " + Math.min(1, value) + ")";
    return el("td", {class: "number share"}, bar, el("span", null, said));
  }
  return el("td", {class: column.number ? "number" : "text"}, said);
}
function flawOf(row) {
  if (row.still_open) return el("span", {class: "muted", title: "counted up to the end of the run"}, " (open)");
  if (row.end_lost) return el("span", {class: "muted", title: "counted up to where it was detected"}, " (end lost)");
  if (row.continued && !row.calls)
    return el("span", {class: "muted", title: "parts of calls that are counted where they began"}, " (continued)");
  return null;
}

// ---- one table ----------------------------------------------------------------------------------
function compare(column, down) {
  return (a, b) => {
    const x = valueIn(column, a), y = valueIn(column, b), noX = x === null || x === undefined,
          noY = y === null || y === undefined;
    if (noX || noY) return noX - noY;  // what is absent comes last, either way
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return down ? -order : order;
  };
}
function rowsShown(table) {
  const wanted = table.filter.trim().toLowerCase(), texts = table.columns.filter((column) => !column.number);
  let rows = table.all;
  if (wanted)
    rows =
      rows.filter((row) => texts.some((column) => String(valueIn(column, row) || "").toLowerCase().includes(wanted)));
  return table.sorted ? rows.slice().sort(compare(table.sorted, table.down)) : rows;
}
function moreButton(table, n) {
  const click = () => {
    table.every = true;
    putRows(table);
  };
  return el("button", {type: "button", on: {click}}, "Show all " + exactly(n) + " rows");
}
function putRows(table) {
  const rows = rowsShown(table), some = table.every ? rows : rows.slice(0, ROWS_FIRST),
        left = DATA[table.id].left_out;
  table.body.replaceChildren(
    ...some.map((row) => el("tr", null, table.columns.map((column, at) => cell(column, row, at === 0, table)))));
  table.heads.forEach((head, at) => head.setAttribute("aria-sort",
                        table.sorted === table.columns[at] ? (table.down ? "descending" : "ascending") : "none"));
  const part = rows.length === table.all.length ? "" : exactly(rows.length) + " of ";
  const told = part + plural(table.all.length, "row");
  table.status.textContent = told + (left > 0 ? ", and " + exactly(left) + " small ones omitted from this page" : "");
  table.more.replaceChildren();
  if (some.length < rows.length) table.more.append(moreButton(table, rows.length));
}
// Numbers begin with the largest, names with A; a third click brings the first order back.
function sortBy(table, column) {
  const first = column.number;
  if (table.sorted !== column)
    [table.sorted, table.down] = [column, first];
  else if (table.down === first)
    table.down = !first;
  else
    table.sorted = null;
  putRows(table);
}
function buildTable(table) {
  if (table.body) return;
  table.filter = "";
  table.body = el("tbody");
  table.status = el("output", {class: "muted", "aria-live": "polite"});
  table.more = el("div", {class: "more"});
  table.heads = table.columns.map(
    (column) => el("th", {scope: "col", class: column.number ? "number" : null, "aria-sort": "none"},
      el("button", {type: "button", title: column.title || null, on: {click: () => sortBy(table, column)}},
        column.label)));
  const input = el("input", {type: "search", placeholder: "Filter", autocomplete: "off", spellcheck: "false"});
  input.addEventListener("input", () => {
    table.filter = input.value;
    putRows(table);
  });
  table.panel.append(el("h3", {class: "sr"}, table.label),
    el("div", {class: "toolbar filter"},
      el("label", {class: "search"}, el("span", {class: "sr"}, "Filter " + table.label), input), table.status),
    el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: " + table.label},
      el("table", null, el("caption", {class: "sr"}, table.label), el("thead", null, el("tr", null, table.heads)),
        table.body)),
    table.more);
  putRows(table);
}
function choose(table, focus) {
  TABLES.filter((one) => one.tab).forEach((one) => {
    const chosen = one === table;
    one.tab.setAttribute("aria-selected", String(chosen));
    one.tab.tabIndex = chosen ? 0 : -1;
    one.panel.hidden = !chosen;
  });
  buildTable(table);
  if (focus) table.tab.focus();
}
// Columns that the table does not name come after those that it does, as the schema describes them.
function addColumns(table) {
  const named = new Set(table.columns.map((column) => column.key));
  Object.entries(DATA[table.id].about || {}).forEach(([column, [unit, meaning]]) => {
    const key = nameOf(column), label = key.replaceAll("_", " "), title = meaning.replaceAll("`", "");
    if (named.has(key)) return;
    table.columns.push(
      unit === null ? text(key, label, {title}) : col(key, label, (value) => show(value, unit), {title}));
  });
}
// Tables that no list above names.
function addTables() {
  const named = new Set(TABLES.map((table) => table.id));
  Object.keys(DATA).filter((id) => DATA[id] && DATA[id].about && !named.has(id)).forEach((id) => TABLES.push(
    {id, label: id[0].toUpperCase() + id.slice(1).replaceAll("_", " "), rows: () => rowsOf(DATA[id]), columns: []}));
}
function putTables() {
  addTables();
  TABLES.forEach((table) => {
    table.all = table.rows();
    addColumns(table);
  });
  const some = TABLES.filter((table) => table.all.length > 0);
  byId("tables").hidden = some.length === 0;
  some.forEach((table) => {
    table.tab = el("button", {
      type: "button",
      role: "tab",
      id: "tab-" + table.id,
      "aria-controls": "panel-" + table.id,
      on: {click: () => choose(table)}
    },
      table.label + " ", el("span", {class: "muted"}, count(table.all.length)));
    table.panel = el("div", {
      class: "panel",
      role: "tabpanel",
      id: "panel-" + table.id,
      "aria-labelledby": "tab-" + table.id,
      hidden: true
    });
    byId("tabs").append(table.tab);
    byId("panels").append(table.panel);
  });
  byId("tabs").addEventListener("keydown", (event) => {
    const at = some.findIndex((table) => table.tab === document.activeElement),
          by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (at < 0 || !by) return;
    choose(some[(at + by + some.length) % some.length], true);
    event.preventDefault();
  });
  if (some.length > 0) choose(some[0]);
  addEventListener("beforeprint", () => some.forEach(buildTable));
  (window.requestIdleCallback || setTimeout)(() => some.forEach(buildTable));
}
