"""The HTML page in Chromium, opened from disk: what it shows and how it is used, by mouse, keys and ear."""
import json
import re

import pytest
from playwright.sync_api import expect

ATTACK = "</script><img src=x onerror=alert(1)>"


def data_of(page):
    return json.loads(page.locator("#data").evaluate("element => element.textContent"))


def range_of(page):
    """What the timeline shows, in its own words; its last part is how long that is."""
    return page.locator("#timeline-range").text_content()


def lasts(page):
    return re.search(r"\((.*)\)", range_of(page)).group(1)


def seconds(text):
    value, unit = text.split()
    return float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]


def column(page, panel, at):
    return page.locator("#panel-%s tbody tr > :nth-child(%d)" % (panel, at)).all_text_contents()


def picture(page, what):
    return page.locator(what).evaluate("canvas => canvas.toDataURL()")


def lanes_place(page, x, y):
    """Of a point in the timeline; the first row of the first lane is at 52."""
    page.locator("#lanes").scroll_into_view_if_needed()
    box = page.locator("#lanes").bounding_box()
    return box["x"] + x, box["y"] + y


# ---- what is there -------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["rich", "bare", "hostile", "small"])
def test_it_opens_and_every_part_is_there(show, name):
    page = show(name)
    assert page.evaluate("performance.getEntriesByName('tare-ready').length") == 1
    headings = page.locator("h2:visible").all_text_contents()
    assert headings[:2] == ["Findings", "Resource usage"]
    assert headings[-1] == "Environment"
    assert page.locator("#nav a").all_text_contents()[0] == "Findings"
    assert page.locator("#own-line").text_content().startswith("Tare overhead: ")


def test_a_run_is_told(show):
    page = show("rich")
    assert page.locator("h1").text_content() == "train --epochs 3"
    assert "--epochs 3" in page.title()
    facts = page.locator("#facts").text_content()
    for words in ("exit status 0", "42.0 s", "node17", "132,066 spans", "41 spans dropped"):
        assert words in facts
    environment = page.locator("#environment-list").text_content()
    for words in ("Linux 6.8.0-45-generic", "3f9d2c1", "NVIDIA H100", "64 CPUs", "512 GiB", "8 cores", "tare 0.1.0"):
        assert words in environment
    assert "41 spans and 0 other events were dropped" in page.locator("#notes").text_content()


def test_findings_come_first_and_worst_first(show):
    page = show("rich")
    assert page.locator(".finding .severity").all_text_contents() == ["Critical", "Warning", "Info"]
    first = page.locator(".finding").first
    assert first.bounding_box()["y"] < 400
    assert "Memory grows by 1.05 MiB a second" in first.locator("h3").text_content()
    assert "append loss.item()" in first.locator(".advice").text_content()
    assert page.locator(".gain").all_text_contents() == ["−27.0 %"]


def test_a_finding_zooms_the_timeline(show):
    page = show("rich")
    assert lasts(page) == "42.0 s"
    page.get_by_role("button", name=re.compile("Show in the timeline: Memory grows")).click()
    assert seconds(lasts(page)) == pytest.approx(37 * 1.24, rel=0.15)
    assert range_of(page) != "0 – 42.00 s (42.0 s)"
    assert page.evaluate("document.activeElement.id") == "lanes"


def test_what_is_absent_says_why(show):
    page = show("bare")
    absent = page.locator("#tiles .na")
    assert absent.count() == 8
    assert page.locator("#tiles .na[title='no NVIDIA driver']").count() == 1
    assert "no NVIDIA driver" in page.locator("#tiles").text_content()
    for at in range(page.locator(".na").count()):
        assert page.locator(".na").nth(at).get_attribute("title")
    rich = show("rich")
    assert "the kernel runs without PSI: boot with psi=1" in rich.locator("#absent").text_content()


def test_steps_are_taken_apart(show):
    page = show("rich")
    parts = page.locator("#steps tbody th").all_text_contents()
    assert parts == ["forward", "backward", "load", "optimizer", "log", "not in a span"]
    shares = [float(text.split()[0]) for text in page.locator("#steps tbody tr td:nth-child(3)").all_text_contents()]
    assert sum(shares) == pytest.approx(100, abs=0.4)
    assert "p95 4.32 ms" in re.sub(r"\s+", " ", page.locator(".step-head").text_content().replace("p95", "p95 "))
    histogram = page.get_by_role("img", name=re.compile("^Histogram of 600 durations of step"))
    label = histogram.get_attribute("aria-label")
    assert "p50 4.01 ms, p95 4.32 ms, p99" in label
    assert page.locator("#steps rect.bin").count() > 20


# ---- steps over the run --------------------------------------------------------------------------
def test_steps_over_the_run_are_stacked_by_part(show):
    page = show("rich")
    course = page.locator(".course")
    label = course.get_by_role("img").get_attribute("aria-label")
    assert "5 steps a bar" in label and "longest 20.1 ms (1st to 5th step)" in label
    bars = course.locator("g.bar-of-course")
    assert bars.count() == 120
    tops = [float(bars.nth(at).locator("rect").last.get_attribute("y")) for at in (0, 1)]
    assert tops[0] < tops[1]  # the slow ones stand higher, and were cut
    assert course.locator("path.cut").count() == 1
    assert course.get_by_text("20.1 ms", exact=True).is_visible()
    heights = [float(rect.get_attribute("height")) for rect in bars.nth(50).locator("rect").all()]
    assert heights[0] / sum(heights) == pytest.approx(0.45, abs=0.01)
    fills = [bars.nth(50).locator("rect").nth(at).evaluate("rect => getComputedStyle(rect).fill") for at in range(3)]
    swatches = page.locator("#steps tbody .swatch").evaluate_all(
        "all => all.slice(0, 3).map(one => getComputedStyle(one).backgroundColor)")
    assert fills == swatches


def test_a_bar_of_steps_tells_and_leads_to_the_timeline(show):
    page = show("rich")
    picture = page.locator(".course svg")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    x = box["x"] + box["width"] * 0.5
    page.mouse.move(x, box["y"] + box["height"] * 0.7)
    told = page.locator("#tip").text_content()
    assert re.search(r"th to \d+th step, .* on average", told) and "forward: " in told and "45.0 %" in told
    page.mouse.click(x, box["y"] + box["height"] * 0.7)
    assert 0.2 < seconds(lasts(page)) < 1


def test_steps_over_the_run_are_also_a_table(show):
    page = show("rich")
    course = page.locator(".course")
    assert course.locator("tbody tr").count() == 0  # not before it is wanted
    course.locator("summary").click()
    expect(course.locator("tbody tr")).to_have_count(120)
    heads = course.locator("thead th").all_text_contents()
    assert heads[:5] == ["Steps", "from", "each", "forward", "backward"] and heads[-1] == "not in a span"
    assert course.locator("tbody tr").first.locator("th").text_content() == "1st to 5th step"


def test_phases_are_preferred(show):
    page = show("phased")
    parts = page.locator("#steps tbody th").all_text_contents()
    assert sorted(parts) == ["data", "forward", "not in a phase"]
    assert page.get_by_role("treeitem", name="forward (phase)").count() >= 1
    kinds = {text for text in column(page, "spans", 11)}
    assert {"step", "phase", "module", "operator", "span"} <= kinds
    data = data_of(page)
    course = data["steps"]["rows"][0][data["steps"]["columns"].index("course")]
    assert sorted(course[0]) == ["data", "forward"] and course[1] is True
    assert sum(bin[0] for bin in course[2:]) == 40


# ---- names that attack ---------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["hostile", "small"])
def test_names_are_shown_not_run(show, name):
    page = show(name)
    assert page.locator("img").count() == 0
    assert page.locator("#panel-spans th[scope=row]").get_by_text(ATTACK).count() >= 1
    assert page.get_by_role("treeitem", name=ATTACK).count() >= 1
    page.fill("#timeline-search", "onerror")
    assert "hit" in page.locator("#timeline-hits").text_content()
    assert page.locator("script").count() == 2


def test_the_page_may_load_nothing(show):
    page = show("small")
    policy = page.locator("meta[http-equiv]").get_attribute("content")
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


# ---- timeline ------------------------------------------------------------------------------------
def test_keys_move_and_zoom(show):
    page = show("rich")
    page.locator("#lanes").focus()
    page.keyboard.press("w")
    assert seconds(lasts(page)) == pytest.approx(42 * 0.7, rel=0.01)
    before = range_of(page)
    page.keyboard.press("d")
    moved = range_of(page)
    assert moved != before
    page.keyboard.press("ArrowLeft")
    assert range_of(page) == before
    page.keyboard.press("s")
    assert lasts(page) == "42.0 s"
    for _ in range(80):
        page.keyboard.press("w")
    assert seconds(lasts(page)) < 1e-6
    page.keyboard.press("0")
    assert range_of(page) == "0 – 42.0 s (42.0 s)"


def test_buttons_zoom(show):
    page = show("rich")
    page.get_by_role("button", name="Zoom in").click()
    assert lasts(page) == "21.0 s"
    page.get_by_role("button", name="Zoom out").click()
    assert lasts(page) == "42.0 s"
    page.get_by_role("button", name="Zoom in").click()
    page.locator("#timeline-all").click()
    assert lasts(page) == "42.0 s"


def test_wheel_and_drag(show):
    page = show("rich")
    page.mouse.move(*lanes_place(page, 600, 60))
    page.mouse.wheel(0, 10)  # only scrolls the page: it was not asked to zoom
    assert lasts(page) == "42.0 s"
    page.mouse.move(*lanes_place(page, 600, 60))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    expect(page.locator("#timeline-range")).not_to_contain_text("(42.0 s)")
    assert seconds(lasts(page)) < 42
    before = range_of(page)
    page.mouse.move(*lanes_place(page, 600, 60))
    page.mouse.down()
    page.mouse.move(*lanes_place(page, 400, 60), steps=4)
    page.mouse.up()
    assert range_of(page) != before
    assert seconds(lasts(page)) < 42
    page.mouse.move(*lanes_place(page, 300, 10))  # on the time scale: a part is chosen
    page.mouse.down()
    page.mouse.move(*lanes_place(page, 500, 10), steps=4)
    wide = seconds(lasts(page))
    page.mouse.up()
    assert seconds(lasts(page)) == pytest.approx(wide * 200 / page.locator("#lanes").evaluate("e => e.clientWidth"),
                                                 rel=0.05)


def test_a_tooltip_names_the_span(show):
    page = show("rich")
    page.mouse.move(*lanes_place(page, 600, 52))
    assert page.locator("#tip").text_content().startswith("train")
    page.mouse.move(*lanes_place(page, 600, 70))
    assert page.locator("#tip").text_content().startswith("epoch")
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()
    page = show("large")
    page.locator("#lanes").focus()
    for _ in range(24):
        page.keyboard.press("w")
    for x in range(40, 1300, 8):  # a merged box tells how many it stands for
        page.mouse.move(*lanes_place(page, x, 24 + 4 + 19 + 4 * 18 + 8))
        if page.locator("#tip").is_visible():
            break
    assert "12 spans merged" in page.locator("#tip").text_content()
    assert "mean" in page.locator("#tip").text_content()


def test_a_span_is_picked_and_stepped_from(show):
    page = show("rich")
    page.mouse.click(*lanes_place(page, 600, 70))
    assert page.locator("#picked strong").text_content() == "epoch"
    page.keyboard.press("Enter")
    assert seconds(lasts(page)) < 30
    page.keyboard.press("Alt+ArrowDown")
    assert page.locator("#picked strong").text_content() == "step"
    page.keyboard.press("Alt+ArrowDown")
    assert page.locator("#picked strong").text_content() == "load"
    page.keyboard.press("Alt+ArrowRight")
    assert page.locator("#picked strong").text_content() == "forward"
    page.keyboard.press("Alt+ArrowUp")
    assert page.locator("#picked strong").text_content() == "step"
    page.keyboard.press("Escape")
    assert page.locator("#picked").text_content() == ""


def test_search_finds_highlights_and_steps(show):
    page = show("rich")
    plain = picture(page, "#lanes-canvas")
    page.fill("#timeline-search", "OPTIM")
    assert page.locator("#timeline-hits").text_content() == "600 hits"
    page.wait_for_timeout(100)
    assert picture(page, "#lanes-canvas") != plain
    page.keyboard.press("Enter")
    assert page.locator("#timeline-hits").text_content() == "hit 1 of 600"
    assert page.locator("#picked strong").text_content() == "optimizer"
    page.get_by_role("button", name="Next hit").click()
    assert page.locator("#timeline-hits").text_content() == "hit 2 of 600"
    page.get_by_role("button", name="Previous hit").click()
    page.get_by_role("button", name="Previous hit").click()
    assert page.locator("#timeline-hits").text_content() == "hit 600 of 600"
    page.fill("#timeline-search", "nothing of that name")
    assert page.locator("#timeline-hits").text_content() == "no hits"
    page.fill("#timeline-search", "")
    assert page.locator("#timeline-hits").text_content() == ""


def test_lanes_fold(show):
    page = show("rich")
    page.locator("#lanes").scroll_into_view_if_needed()
    tall = page.locator("#lanes").evaluate("e => e.scrollHeight")
    page.mouse.click(*lanes_place(page, 60, 24 + 4 + 9))
    assert page.locator("#lanes").evaluate("e => e.scrollHeight") == tall - 4 * 18


def test_charts_lie_under_the_timeline(show):
    page = show("rich")
    label = page.locator("#under").get_attribute("aria-label")
    for words in ("CPU in use", "Resident memory", "GPU 0 busy", "loss"):
        assert words in label
    page.locator("#tracks summary").click()
    height = page.locator("#under").bounding_box()["height"]
    page.get_by_role("checkbox", name="Resident memory").uncheck()
    expect(page.locator("#under")).not_to_have_attribute("aria-label", re.compile("Resident"))
    assert page.locator("#under").bounding_box()["height"] < height


def test_the_timeline_is_also_a_table(show):
    page = show("rich")
    page.locator("#timeline-table summary").click()
    rows = page.locator("#timeline-table tbody tr")
    expect(rows).to_have_count(100)
    assert rows.first.locator("th").text_content() == "decode image" or rows.first.locator("th").text_content()
    assert "train" in page.locator("#timeline-table tbody th").all_text_contents()
    page.get_by_role("button", name="epoch").first.click()
    assert page.locator("#picked strong").text_content() == "epoch"


# ---- flame graph, charts -------------------------------------------------------------------------
def test_the_flame_graph_zooms_and_searches(show):
    page = show("rich")
    graph = page.locator("#flame-graph")
    assert graph.get_by_role("treeitem").count() >= 8
    wide = graph.locator("button", has_text="forward").first.bounding_box()["width"]
    graph.locator("button", has_text="forward").first.click()
    assert graph.locator("button", has_text="forward").first.bounding_box()["width"] > wide * 1.5
    assert "In forward" in page.locator("#flame-path").text_content()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "matmul"
    page.keyboard.press("Enter")
    assert "In matmul" in page.locator("#flame-path").text_content()
    page.keyboard.press("Escape")
    assert page.locator("#flame-path").text_content() == ""
    page.fill("#flame-search", "back")
    assert re.match(r"1 hit, .*27\.\d %", page.locator("#flame-hits").text_content())
    assert graph.locator("button.hit").count() == 1


def test_a_peak_leads_to_its_span(show):
    page = show("rich")
    chart = page.locator(".chart", has_text="Disk, by the program")
    assert chart.locator("circle.dot").count() == 1
    said = chart.locator(".peak").text_content()
    span = chart.locator(".peak code").text_content()
    assert "Peak 2" in said and "MiB/s" in said
    label = chart.get_by_role("img").get_attribute("aria-label")
    assert span in label and "Peak" in label
    chart.get_by_role("button").click()
    assert page.locator("#picked strong").text_content() == span
    assert lasts(page) != "42.0 s"


# ---- strips --------------------------------------------------------------------------------------
def shades(canvas):
    """How dark each cell of the first strip is."""
    return canvas.evaluate("one => [...one.getContext('2d').getImageData(0, 0, one.width, 1).data]")[3::4]


def test_each_cpu_and_thread_has_a_strip(show):
    page = show("rich")
    cpus = page.locator(".heat", has_text="Each CPU of the machine")
    canvas = cpus.locator("canvas")
    assert cpus.locator(".heat-names span").all_text_contents() == ["CPU %d" % at for at in range(8)]
    assert canvas.evaluate("one => [one.width, one.height]") == [240, 8]
    dark = shades(canvas)
    assert min(dark[:110]) > max(dark[130:])  # busy, then idle
    label = canvas.get_attribute("aria-label")
    assert re.search(r"CPU 0 [\d.]+ %, CPU 1 ", label)
    threads = page.locator(".heat", has_text="Each thread")
    assert threads.locator(".heat-names span").all_text_contents() == ["train (4120)", "loader 0 (4121)"]


def test_a_strip_tells_what_it_shows(show):
    page = show("rich")
    canvas = page.locator(".heat canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 4)
    told = page.locator("#tip").text_content()
    assert told.startswith("CPU 0") and "at 2" in told and "% of a core" in told


def test_strips_follow_the_theme(show):
    page = show("rich")
    canvas = page.locator(".heat canvas").first
    before = canvas.evaluate("one => one.toDataURL()")
    page.click("#theme")
    assert canvas.evaluate("one => one.toDataURL()") != before


def test_a_real_run_has_strips_and_a_course(show):
    page = show("million")  # it takes as long as a few samples
    data = data_of(page)
    assert len(data["cpu_strips"]["rows"]) >= 1
    assert page.locator(".course g.bar-of-course").count() > 10


# ---- tables --------------------------------------------------------------------------------------
def test_tables_sort(show):
    page = show("rich")
    names = column(page, "spans", 1)
    assert names[0].startswith("train")
    head = page.locator("#panel-spans thead th", has_text="calls")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    calls = [int(text.replace(",", "")) for text in column(page, "spans", 2)]
    assert calls == sorted(calls, reverse=True)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "none"
    assert column(page, "spans", 1) == names


def test_tables_filter_and_tabs_take_keys(show):
    page = show("rich")
    page.get_by_label("Filter Spans").fill("mat")
    assert column(page, "spans", 1) == ["matmul"]
    assert "1 of 12 rows" in page.locator("#panel-spans output").text_content()
    page.get_by_role("tab", name=re.compile("Spans")).focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name=re.compile("Steps")).get_attribute("aria-selected") == "true"
    assert page.locator("#panel-spans").is_hidden()
    page.get_by_role("tab", name=re.compile("Metrics")).click()
    assert "memory.rss" in column(page, "metrics", 1)
    assert page.locator("#panel-metrics .na[title*='only root may read RAPL']").count() > 0
    page.get_by_role("tab", name=re.compile("Processes")).click()
    assert "it runs as another user, who may not open the session" in page.locator("#panel-processes").text_content()
    assert "2.25 s" in page.locator("#panel-processes tbody tr").first.text_content()
    assert page.locator("#panel-processes .na[title='sampled at most once']").count() > 0


# ---- for everyone --------------------------------------------------------------------------------
def test_dark_and_light(show):
    page = show("rich", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Use light colors").click()
    light = page.evaluate(ground)
    assert light != dark
    assert page.get_by_role("button", name="Use dark colors").get_attribute("aria-pressed") == "false"
    page.get_by_role("button", name="Use dark colors").click()
    assert page.evaluate(ground) == dark
    assert show("rich").evaluate(ground) == light


# Of all text that stands on the page: the ratio of WCAG 2 between it and what is behind it.
CONTRASTS = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number).concat(1).slice(0, 4);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const low = [];
  document.querySelectorAll('body *').forEach((element) => {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text || !element.checkVisibility() || element.closest('svg, script, noscript, .sr, .skip, :disabled'))
      return;
    const a = light(parse(getComputedStyle(element).color)), b = light(behind(element));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const what = element.tagName + ' ' + element.className + ' ' + element.textContent.slice(0, 30);
    if (ratio < 4.5) low.push(what + ' ' + ratio);
  });
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(show, scheme):
    assert show("rich", color_scheme=scheme).evaluate(CONTRASTS) == []


# Elements that are used or seen, and have no name for those who do not see them.
NAMELESS = """() => {
  const low = [], roles = '[role=img], [role=tab], [role=tabpanel], [role=region], [tabindex]';
  document.querySelectorAll('button, input, a, table, section, nav, ' + roles).forEach((element) => {
    if (!element.checkVisibility()) return;
    const by = element.getAttribute('aria-labelledby');
    const named = element.getAttribute('aria-label') || (by && document.getElementById(by).textContent) ||
      (element.labels && [...element.labels].map((label) => label.textContent).join('')) ||
      (element.tagName === 'TABLE' && element.caption && element.caption.textContent) ||
      (!['SECTION', 'NAV', 'TABLE'].includes(element.tagName) && element.textContent);
    if (!named || !named.trim()) low.push(element.outerHTML.slice(0, 120));
  });
  return low;
}"""


@pytest.mark.parametrize("name", ["rich", "small"])
def test_everything_has_a_name_and_a_place(show, name):
    page = show(name)
    page.locator("#timeline-table summary").click()
    page.locator("#tracks summary").click()
    assert page.evaluate(NAMELESS) == []
    for landmark in ("main", "header", "footer", "nav"):
        assert page.locator(landmark).count() >= 1
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].filter(e => e.checkVisibility())"
                           ".map(e => +e.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:]))
    assert page.locator("th:not([scope])").count() == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_tab_reaches_everything_and_shows_where_it_is(show):
    page = show("rich")
    reached, focus = [], "[document.activeElement.id || document.activeElement.textContent, " \
        "getComputedStyle(document.activeElement).outlineStyle]"
    for _ in range(300):
        page.keyboard.press("Tab")
        what, outline = page.evaluate(focus)
        if page.evaluate("document.activeElement === document.body"):
            break  # once around
        assert outline != "none", what
        reached.append(what)
    for wanted in ("theme", "timeline-search", "timeline-next", "timeline-all", "lanes", "flame-search", "tab-spans"):
        assert wanted in reached
    assert reached[0] == "Skip to the findings"


def test_it_prints(show):
    page = show("rich", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    for hidden in (".bar", "#timeline", "#flame", ".toolbar >> nth=0", "#tabs"):
        assert page.locator(hidden).first.is_hidden(), hidden
    for shown in ("#findings", "#used", "#panel-spans", "#panel-steps", "#panel-metrics", "#environment", "#own"):
        assert page.locator(shown).is_visible(), shown
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(CONTRASTS) == []


@pytest.mark.parametrize("width", [360, 800, 1400, 2200])
def test_it_fits_every_width(show, width):
    page = show("rich", viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#lanes-canvas").bounding_box()["width"] <= width


# ---- a million spans -----------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["million", "large"])
def test_a_million_spans_make_a_small_page(show, pages, name):
    assert pages(name).stat().st_size < 5_000_000
    page = show(name)
    data = data_of(page)
    told = page.locator("#timeline-lead").text_content()
    spans, merged = data["timeline"]["spans"], data["timeline"]["merged"]
    assert spans >= 500_000 and merged > spans / 2, (spans, merged, data["run"], data.get("notes"))
    assert "{:,}".format(merged) in told and "{:,}".format(spans) in told
    assert page.evaluate("performance.getEntriesByName('tare-ready').length") == 1
    page.fill("#timeline-search", "matmul")
    assert "spans" in page.locator("#timeline-hits").text_content()
    page.keyboard.press("Enter")
    assert "matmul" in page.locator("#picked strong").text_content()
    page.locator("#lanes").focus()
    for key in "wwwdddsss0":
        page.keyboard.press(key)
    assert range_of(page).startswith("0 – ")


def test_tables_have_every_column_that_the_schema_shows(show):
    """With its label, what it means, and figures at the right; not one that no row has without a reason."""
    page = show("phased")
    data = data_of(page)
    tables = [name for name, table in data.items() if isinstance(table, dict) and table.get("about") and table["rows"]]
    assert {"spans", "steps", "threads", "processes", "metrics"} <= set(tables)
    for name in tables:
        page.locator("#tab-" + name).click()
        heads = page.locator("#panel-%s thead th" % name)
        told = {head.inner_text(): (head.locator("button").get_attribute("title"), head.get_attribute("class"))
                for head in heads.all()}
        table = data[name]
        for key, column in table["about"].items():
            at = table["columns"].index(key)
            if column.get("under") or not (column.get("absent") or column.get("absent_by") or
                                           any(row[at] not in (None, "") for row in table["rows"])):
                continue
            title, kind = told[column["label"]]
            assert title == column["meaning"].replace("`", ""), (name, key)
            assert (kind == "number") == column.get("number", False), (name, key)


def test_no_span_is_lost_by_merging(show):
    page = show("million")
    data = data_of(page)
    assert data["timeline"]["spans"] + data["timeline"]["left_out"] == data["run"]["spans"]
    page.fill("#timeline-search", "matmul gradient")
    hits = page.locator("#timeline-hits").text_content()
    found = int(re.search(r"([\d,]+) spans", hits).group(1).replace(",", ""))
    calls = sum(row[data["spans"]["columns"].index("calls")] for row in data["spans"]["rows"]
                if row[0] == "matmul gradient")
    assert calls / 2 < found <= data["timeline"]["spans"]  # a merged box has one name for all that is in it
