// operators: the tables of a framework's operators and of a model's modules, where there are any.
const noShapes = (row) => row.shapes_absent;
const noRate = (row) => row.shapes_absent || "no FLOP formula for this operator";
const noShare = (row) => row.of_peak_absent || noRate(row);
const perSecond = (unit) => (value) => count(value) + unit;
TABLES.splice(3, 0,
  {
    id: "operators",
    label: "Operators",
    rows: () => rowsOf(DATA.operators),
    columns: [
      text("name", "Operator"), text("direction", "direction", {reason: "neither forward nor backward"}),
      text("phase", "phase", {reason: "outside of all phases"}), col("calls", "calls", NUMBER),
      col("self", "self", TIME, {title: "total without callees and recording overhead"}),
      col("share", "share", percent, {bar: true, title: "of the self time of all operators"}),
      col("total", "total", TIME), col("mean", "mean", TIME), ...EACH,
      col("per_step", "self per step", TIME, {reason: "no steps were recorded"}),
      text("module", "module", {
        reason: (row) => row.modules > 1 ? row.modules + " modules: see the table of modules" : "no module is known"
      }),
      text("pair", "paired with", {reason: (row) => row.unpaired || "no counterpart"}),
      col("flops_per_second", "FLOP/s", perSecond(""), {reason: noRate}),
      col("of_peak_flops", "of peak", percent, {reason: noShare, title: "of the machine's peak for its data type"}),
      col("bytes_per_second_estimate", "≈ bytes/s", perSecond("B/s"), {reason: noShapes, title: "estimated from the sizes of its tensors"}),
      col("of_peak_bytes", "of peak", percent, {
        reason: noShare, title: "of the cache or memory bandwidth at this size"
      }),
      text("shapes", "shapes", {reason: noShapes})
    ]
  },
  {
    id: "modules",
    label: "Modules",
    rows: () => rowsOf(DATA.modules),
    tree: true,
    columns: [
      text("path", "Module"), col("calls", "calls", NUMBER), col("total", "total", TIME),
      col("share", "share", percent, {bar: true}),
      col("self", "self", TIME, {title: "total without the modules inside it"}),
      col("operators", "operators", TIME, {title: "of self: in operators"}),
      col("backward", "backward", TIME, {
        title: "nodes of the backward pass whose forward operator ran in it",
        reason: "no node of the backward pass is known to belong to it"
      })
    ]
  });
