// tables: every table of the report's schema, sortable and filterable, generated from the description of its columns.
const ROWS_FIRST = 200;
const PROCESSES = rowsOf(DATA.processes);
PROCESSES.forEach((row) => {
  if (!row.joined) row.threads = row.spans = row.busy = null;
});
const ROWS = {spans: SPANS, processes: PROCESSES, metrics: METRICS.filter((row) => !row.derived)};
const rowsIn = (id) => ROWS[id] || (ROWS[id] = rowsOf(DATA[id]));

// ---- columns ------------------------------------------------------------------------------------
const waited = (status) => (status & 127) === 0 ? "status " + (status >> 8) : "signal " + (status & 127);
const isMissing = (value) => value === null || value === undefined || value === "";
function textOf(column, row) {
  const value = row[column.key];
  if (column.key === "wait_status") return waited(value);
  if (column.of) return textOf(TABLES.find((table) => table.id === column.of).columns[0], rowsIn(column.of)[value]);
  if (value === true || value === false) return value ? "yes" : "no";
  if (!column.number) return String(value);
  const unit = column.unit_by ? row[column.unit_by] : column.unit;
  if (!unit) return String(value);
  return (column.prefix && row[column.prefix_by] ? column.prefix : "") +
    (unit === "count" && Number.isInteger(value) ? exactly(value) : show(value, unit));
}
// Columns grouped under another one are in its list. A column without any value or reason is omitted.
function columnsOf(id) {
  const made = [];
  Object.entries(DATA[id].about).forEach(([name, about]) => {
    const column = {
      ...about, key: nameIn(DATA[id], name), under: [], absent_by: about.absent_by && nameOf(about.absent_by)
    };
    if (about.under)
      made[made.length - 1].under.push(column);
    else
      made.push(column);
  });
  return made.filter((column, at) => at === 0 || column.absent || column.absent_by ||
    rowsIn(id).some((row) => !isMissing(row[column.key])));
}
const TABLES = Object.keys(DATA).filter((id) => DATA[id] && DATA[id].about).map((id) => ({
  id,
  label: DATA[id].label,
  tree: DATA[id].columns.includes("depth")
}));

// ---- cells --------------------------------------------------------------------------------------
const valueIn = (column, row) =>
  column.of && !isMissing(row[column.key]) ? textOf(column, row) : row[column.key];
function saidIn(column, row) {
  if (isMissing(row[column.key])) {
    const reason = (column.absent_by && row[column.absent_by]) || column.absent;
    return reason ? na(reason) : "";
  }
  const under = column.under.filter((one) => !isMissing(row[one.key]));
  return textOf(column, row) + under.map((one) => (one.between || " ") + textOf(one, row)).join("");
}
function cell(column, row, first, table) {
  const value = row[column.key], said = saidIn(column, row);
  if (first) {
    const made = el("th", {scope: "row", title: row.what || null}, said, flawOf(row));
    if (table.tree && !table.sorted && row.depth > 0)
      made.style.paddingLeft = 12 + Math.min(row.depth, 24) * 14 + "px";
    return made;
  }
  if (column.bar && !isMissing(value)) {
    const bar = el("i", {"aria-hidden": "true"});
    bar.style.width = "calc((100% - 12px) * " + Math.min(1, value) + ")";
    return el("td", {class: "number share"}, bar, el("span", null, said));
  }
  return el("td", {class: column.number ? "number" : "text"}, said);
}
function flawOf(row) {
  if (row.still_open) return el("span", {class: "muted", title: "counted up to the end of the run"}, " (open)");
  if (row.end_missing) return el("span", {class: "muted", title: "counted up to where it was detected"}, " (end missing)");
  if (row.continued && !row.calls)
    return el("span", {class: "muted", title: "parts of calls that are counted where they began"}, " (continued)");
  return null;
}

// ---- one table ----------------------------------------------------------------------------------
function compare(column, down) {
  return (a, b) => {
    const x = valueIn(column, a), y = valueIn(column, b), noX = x === null || x === undefined,
          noY = y === null || y === undefined;
    if (noX || noY) return noX - noY;  // absent values come last in both orders
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
// Numbers start with the largest, names with A; a third click restores the original order.
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
      el("button", {type: "button", title: column.meaning.replaceAll("`", ""), on: {click: () => sortBy(table, column)}},
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
function putTables() {
  TABLES.forEach((table) => {
    table.all = rowsIn(table.id);
    table.columns = columnsOf(table.id);
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
