// report: what ran, the findings, resource usage, the environment, the overhead line, the theme.
const RUN = oneOf(DATA.run), USED = oneOf(DATA.usage), OWN = oneOf(DATA.tare), PHASES = oneOf(DATA.phases);
const SEVERITIES = {critical: ["Critical", "!"], warning: ["Warning", "▲"], info: ["Info", "i"]};

function endOfRun() {
  if (RUN.oom_killed) return el("span", {class: "badge bad"}, "killed: out of memory");
  if (RUN.signal) return el("span", {class: "badge bad"}, "killed by signal " + RUN.signal);
  if (RUN.exit_status === null)
    return RUN.attached ?
      el("span", {class: "badge"}, "attached to process " + RUN.attached) :
      el("span", {class: "badge", title: RUN.finished ? "not recorded in the file" : "unfinished trace"},
        "exit status n/a");
  return el("span", {class: "badge " + (RUN.exit_status === 0 ? "good" : "bad")}, "exit status " + RUN.exit_status);
}

function dateOf(when) {
  const day = [when.getFullYear(), two(when.getMonth() + 1), two(when.getDate())].join("-");
  return day + " " + [when.getHours(), when.getMinutes(), when.getSeconds()].map(two).join(":");
}
// The command without the directory of its program, which is shown in the environment.
function shortCommand() {
  const program = RUN.arguments[0] || "", cut = program.lastIndexOf("/") + 1;
  return cut > 0 && RUN.command.startsWith(program) ? RUN.command.slice(cut) : RUN.command;
}
function putHeader() {
  const command = RUN.command ? shortCommand() : "command unknown";
  document.title = command + " · Tare";
  byId("command").textContent = command;
  byId("command").title = RUN.command || "";
  const when = RUN.start_realtime ? new Date(RUN.start_realtime / 1e6) : null;
  const fact = (...parts) => el("span", null, ...parts);
  fill(byId("facts"), null, [
    fact(endOfRun()),
    fact(
      "ran ", known(RUN.elapsed) ? el("b", null, time(RUN.elapsed)) : na("duration not recorded")),
    fact("on ", RUN.host ? el("b", null, RUN.host) : na("host not recorded")),
    fact("started ",
      when ? el("time", {datetime: when.toISOString(), title: when.toISOString()}, dateOf(when)) :
             na("start time not recorded")),
    fact(plural(RUN.spans, "span")),
    RUN.dropped_spans > 0 && fact(el("span", {class: "badge bad"}, exactly(RUN.dropped_spans) + " spans dropped")),
    !RUN.finished && fact(el("span", {class: "badge bad"}, "unfinished trace"))
  ]);
}

// ---- findings -----------------------------------------------------------------------------------
function putFinding(row) {
  const [word, mark] = SEVERITIES[row.severity];
  const figures = (row.figures || []).filter(([, value]) => known(value));
  const somewhere = known(row.from) && known(row.to);
  return el("article", {class: "finding " + row.severity, "data-id": row.id},
    el("div", {class: "severity", "data-mark": mark}, word),
    el("div", {class: "words"}, el("h3", null, row.title), row.evidence && el("p", {class: "evidence"}, row.evidence),
      known(row.location) && el("p", {class: "location small"}, el("code", null, row.location),
        known(row.function) && " in " + row.function,
        known(row.line_share) && ": " + percent(row.line_share) + " of that time"),
      row.advice && el("p", {class: "advice"}, row.advice),
      figures.length > 0 &&
        el("dl", {class: "figures-of"},
          figures.map(([name, value, unit]) => el("div", null, el("dt", null, name.replace(/_/g, " ")),
                        el("dd", null, name === "pid" ? String(value) : show(value, unit))))),
      row.source && el("p", {class: "small muted"}, "Your rule, " + row.source)),
    el("div", {class: "side"},
      known(row.gain) ?
        [
          el("span", {class: "gain"}, "−" + percent(row.gain)),
          el("span", {class: "muted small"},
            "of steady-state time, upper bound" + (row.gain_how ? ": " + row.gain_how : ""))
        ] :
        el("span", {class: "muted small"}, "Gain ", na(row.gain_how), row.gain_how ? ": " + row.gain_how : ""),
      somewhere &&
        el("button", {
          type: "button",
          "aria-label": "Show in the timeline: " + row.title,
          on: {click: () => timeline.goTo(row.from, row.to, true)}
        },
          "Show " + time(row.from) + " – " + time(row.to))));
}

function putFindings() {
  const rows = rowsOf(DATA.findings), list = byId("findings-list");
  if (rows.length === 0) {
    list.append(el("p", {class: "calm"}, "No findings. Unavailable metrics were not checked."));
    return;
  }
  rows.forEach((row) => list.append(putFinding(row)));
}

// ---- resource usage -----------------------------------------------------------------------------
function tile(name, value, reason, subs, share) {
  const meter = known(share) && el("div", {class: "meter", "aria-hidden": "true"}, el("i"));
  if (meter) meter.firstChild.style.width = Math.min(100, share * 100) + "%";
  return el("div", null, el("dt", null, name), el("dd", {class: "big"}, value === null ? na(reason) : value),
    (value === null ? [reason] : subs).filter(Boolean).map((text) => el("dd", {class: "sub"}, text)), meter);
}

function memoryTile() {
  const peak = USED.rss_peak_bytes, allowed = USED.memory_allowed_bytes;
  return tile("Peak memory, largest process", known(peak) ? (USED.rss_peak_at_least ? "≥ " : "") + bytes(peak) : null,
    USED.reasons.rss_peak_bytes,
    [
      USED.rss_peak_process,
      known(USED.tree_rss_max_bytes) && bytes(USED.tree_rss_max_bytes) + " of all processes together",
      known(allowed) && known(peak) && percent(peak / allowed) + " of the " + bytes(allowed) + " limit"
    ],
    known(allowed) && known(peak) ? peak / allowed : null);
}

// Duration of startup, steady state and shutdown, and the parts of startup from the schema.
function phasesTile() {
  if (!PHASES || !known(PHASES.steady_state.from)) return null;
  const lasts = ({from, to}) => known(from) && known(to) ? to - from : null;
  const parts = Object.entries(PHASES).filter(([, value]) => typeof value === "number" && value > 0)
    .filter(([name]) => DATA.phases[name + "_ns"] && name !== "compile")
    .map(([name, value]) => name.replace("_", "-") + " " + time(value)).join(", ");
  const line = (name) => known(lasts(PHASES[name])) ?
    name + " " + time(lasts(PHASES[name])) + (name === "startup" && parts ? ": " + parts : "") :
    name + ": " + PHASES[name].how;
  const steady = lasts(PHASES.steady_state);
  return tile("Steady state", time(steady), "", [line("startup"), line("shutdown")],
    known(RUN.elapsed) && RUN.elapsed > 0 ? steady / RUN.elapsed : null);
}

function putTiles() {
  const allowed = USED.cores_allowed, mean = USED.cores_mean;
  const either = (a, b, unit) =>
    known(a) || known(b) ? [known(a) ? show(a, unit) : "n/a", known(b) ? show(b, unit) : "n/a"].join(" / ") : null;
  byId("tiles").append(
    tile("Elapsed", known(RUN.elapsed) ? time(RUN.elapsed) : null, "duration not recorded", []),
    ...[phasesTile()].filter(Boolean),
    tile("CPU time", known(USED.cpu_seconds) ? time(USED.cpu_seconds * 1e9) : null, USED.reasons.cpu_seconds,
      [
        known(USED.user_seconds) && known(USED.system_seconds) &&
          time(USED.user_seconds * 1e9) + " user, " + time(USED.system_seconds * 1e9) + " system",
        known(mean) &&
          digits(mean) + " cores on average" + (known(allowed) ? ", of " + digits(allowed).replace(/\.0+$/, "") : "")
      ],
      known(mean) && known(allowed) && allowed > 0 ? mean / allowed : null),
    memoryTile(),
    tile("Disk, read / written", either(USED.disk_read_bytes, USED.disk_write_bytes, "bytes"),
      USED.reasons.disk_read_bytes, [known(USED.io_read_bytes) && known(USED.io_write_bytes) &&
        bytes(USED.io_read_bytes) + " / " + bytes(USED.io_write_bytes) + " requested"]),
    tile("Network, in / out", either(USED.net_received_bytes, USED.net_sent_bytes, "bytes"), USED.reasons.net_received_bytes,
      ["whole machine"]),
    tile("Threads / processes", either(USED.threads_max, USED.processes_max, "count"), USED.reasons.threads_max, ["maximum at the same time"]),
    tile("GPU busy", known(USED.gpu_busy_mean) ? percent(USED.gpu_busy_mean) : null, USED.reasons.gpu_busy_mean,
      [known(USED.gpu_memory_max_bytes) && bytes(USED.gpu_memory_max_bytes) + " of its memory (peak)"],
      USED.gpu_busy_mean),
    tile("Energy", known(USED.energy_joules) ? show(USED.energy_joules, "joules") : null,
      USED.reasons.energy_joules, [known(USED.carbon_grams) && known(USED.carbon_intensity) &&
        digits(USED.carbon_grams) + " g CO₂ at an assumed " + count(USED.carbon_intensity) + " g/kWh"]));
}

// ---- environment, notes, the overhead line ------------------------------------------------------
function putEnvironment() {
  const list = byId("environment-list");
  const put = (name, value, reason) => list.append(el("dt", null, name),
    el("dd", name === "Command" || name === "Directory" || name === "Revision" ? {class: "mono"} : null,
      value === null || value === undefined ? na(reason) : value));
  const limits = [
    known(USED.cores_allowed) && digits(USED.cores_allowed).replace(/\.0+$/, "") + " cores",
    known(USED.memory_allowed_bytes) && bytes(USED.memory_allowed_bytes) + " of memory"
  ].filter(Boolean).join(", ");
  const untold = "not recorded";
  put("Command", RUN.command, untold);
  put("Directory", RUN.directory, untold);
  put("Revision", RUN.revision, "not a git repository, or git failed");
  put("Host", RUN.host, untold);
  put("System", [RUN.system, RUN.kernel].filter(Boolean).join(", ") || null, untold);
  put("CPU",
    RUN.cpu_model || RUN.cpus ? [RUN.cpu_model, RUN.cpus && plural(RUN.cpus, "CPU")].filter(Boolean).join(", ") :
                                null,
    untold);
  put("Memory", known(RUN.memory_bytes) ? bytes(RUN.memory_bytes) : null, untold);
  put("Limits", limits || null, "limits not sampled");
  put("GPU", RUN.gpus || null, USED.reasons.gpu_busy_mean || "none found");
  put("Recorded by", RUN.writer, untold);
  if (DATA.notes.length > 0) {
    byId("notes").append(el("h3", null, "Missing or truncated data"),
      el("ul", null, DATA.notes.map((note) => el("li", null, note))));
  }
}

function putOwn() {
  const line = byId("own-line"), parts = [];
  const said = (value, reason) => known(value) ? el("b", null, time(value)) : na(reason);
  if (OWN.spans + OWN.chained_spans + OWN.complete_spans === 0 && !known(OWN.own))
    parts.push("Tare overhead: none in the program, nothing was recorded");
  else
    parts.push(
      "Tare overhead: ", said(OWN.own, OWN.reasons.own), " in the program");
  if (known(OWN.share))
    parts.push(" (" + percent(OWN.share) + " of the recorded time" +
      (known(OWN.pair) ? ", " + digits(OWN.pair) + " ns per span" : "") + ")");
  if (known(OWN.subtracted)) parts.push(", of which ", said(OWN.subtracted), " is subtracted from the times shown");
  parts.push(". Collector: ", said(OWN.collector_cpu, OWN.reasons.collector_cpu), " of CPU");
  if (known(OWN.sampler_cpu) && OWN.interval > 0)
    parts.push(", ", said(OWN.sampler_cpu), " of that for sampling every " + time(OWN.interval));
  if (known(OWN.longest_interval) && known(OWN.interval) && OWN.longest_interval > OWN.interval * 1.5)
    parts.push(" (up to " + time(OWN.longest_interval) + ")");
  line.append(...parts, ".");
}

// ---- theme, navigation --------------------------------------------------------------------------
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function putTheme() {
  const button = byId("theme");
  const tell = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colors" : "Use dark colors");
    button.setAttribute("aria-pressed", String(isDark()));
    themed.forEach((draw) => draw());
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    tell();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
  tell();
}
function putNavigation() {
  const links = new Map();
  document.querySelectorAll("section[data-nav]").forEach((section) => {
    if (section.hidden) return;
    const link = el("a", {href: "#" + section.id}, section.dataset.nav);
    links.set(section, link);
    byId("nav").append(link);
  });
  const seen = new IntersectionObserver((entries) => {
    entries.forEach((entry) => {
      if (entry.isIntersecting)
        links.forEach((link, section) => link.setAttribute("aria-current", String(section === entry.target)));
    });
  }, {rootMargin: "-15% 0px -75% 0px"});
  links.forEach((_, section) => seen.observe(section));
}
