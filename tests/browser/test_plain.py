"""Pages without a script: comparisons, trends and models, on a phone and on a wide screen, light and dark, by keys and
on paper. Their data is made by hand, so that every run of the tests sees the same."""
import json

import pytest

from conftest import BUILD, ROOT, run

LONG = "decode_with_a_name_that_does_not_break_anywhere_in_its_middle_and_goes_on_for_rather_long"
ALIKE = "augment: RandomResizedCrop(size=224, antialias=True), RandomHorizontalFlip(p=0.5), Normalize(mean, std)"


def waves(level, n=20):
    return [level * (1 + 0.01 * ((i * 7919) % 13 - 6) / 6) for i in range(n)]


def baseline(factor, more=0):
    """Spans: two with long names, one of which changes; `more` that do not change; what was sampled has no cost."""
    levels = [("step", "ns", 31e6 * (1 + (factor - 1) / 2)), (f"span:step/{LONG}", "ns", 11e6 * factor),
              (f"span:step/{ALIKE}", "ns", 1.2e6), ("span:step/backward", "ns", 9e6 / factor),
              ("operator:aten::mm", "ns", 3e6), ("metric:memory.rss", "bytes", 2.5e9), ("run.peak_rss", "bytes", 3.1e9)]
    levels += [(f"span:step/part {i}", "ns", 1e7 + i) for i in range(more)]
    in_steps = {"total": None, "per": "step", "each": 1}
    figures = [{"name": name, "unit": unit, "better": "lower", "exact": False, "value": level, "n": 20,
                "samples": waves(level), **({} if name.startswith("metric:") else {**in_steps, "total": 20 * level})}
               for name, unit, level in levels]
    return json.dumps({"tare_baseline": 1, "kind": "run", "command": "python3 train.py", "host": "here", "machine": "m",
                       "cpu_model": "c", "runs": 1, "notes": [], "figures": figures})


def kept(count):
    """Runs as `tare history export` writes them: a figure rises by 30 %, falls again, and of many runs some are far
    out."""
    for i in range(count):
        level = 1.3 if count // 3 <= i < 2 * count // 3 else 1.0
        value = 1e6 * level * waves(1, i + 1)[i] * (4 if i % 97 == 60 else 1)
        machine = {"command": "python3 train.py", "host": "h", "machine": "m", "cpu_model": "c"}
        told = {"id": f"{i:08x}" + "0" * 24, "kind": "run", "when_ns": 1700000000000000000 + i * 3600 * 10**9,
                "directory": "/w", "revision": f"{i:012x}", "dirty": False, "status": 0, "signal": None,
                "elapsed_ns": int(value), "trace": "/w/t.tare", "tags": [], **machine}
        figures = [{"name": name, "unit": unit, "better": "lower", "exact": False, "value": of * value, "total": None,
                    "n": 1} for name, unit, of in (("step", "ns", 1), ("run.peak_rss", "bytes", 300))]
        yield json.dumps({"schema": {"name": "tare-history", "version": 1}, "run": told,
                          "figures": {"tare_baseline": 1, "kind": "run", "figures": figures}})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    (folder / "base.json").write_text(baseline(1))
    (folder / "head.json").write_text(baseline(1.4))
    run(BUILD / "tare", "compare", "--html", "-o", folder / "compare.html", folder / "base.json", folder / "head.json")
    for name, factor in (("many_base", 1), ("many_head", 1.4)):
        (folder / f"{name}.json").write_text(baseline(factor, more=60))
    run(BUILD / "tare", "compare", "--html", "-o", folder / "many.html", folder / "many_base.json",
        folder / "many_head.json")
    for count in (60, 2000):
        (folder / "runs.jsonl").write_text("\n".join(kept(count)) + "\n")
        store = folder / f"store{count}"
        run(BUILD / "tare", "history", "import", "--store", store, folder / "runs.jsonl")
        run(BUILD / "tare", "history", "trend", "--html", "-o", folder / f"trend{count}.html", "--store", store)
    seed = ROOT / "tests" / "fuzz" / "corpus" / "fuzz_model" / "unknown_operator"
    run(BUILD / "tare", "model", "--static", "--html", "-o", folder / "model.html", seed)
    return folder


@pytest.fixture
def show(chromium, files):
    contexts, problems = [], []

    def open_page(name, width, scheme="light"):
        contexts.append(chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}))
        page, path = contexts[-1].new_page(), files / f"{name}.html"
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: request.url != path.as_uri() and not request.url.startswith("data:")
                and problems.append("request: " + request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


PAGES = ("compare", "many", "trend60", "trend2000", "model")


@pytest.mark.parametrize("width", [390, 1200, 1600])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_page(show, name, width):
    page = show(name, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    wide = page.evaluate("""[...document.querySelectorAll('.sheet')].filter(one => one.scrollWidth > one.clientWidth)
        .map(one => one.getAttribute('aria-label'))""")
    assert wide == []  # on a phone a row becomes a block


@pytest.mark.parametrize("width", [390, 1200])
def test_the_verdict_is_in_sight(show, width):
    page = show("compare", width)
    found = page.locator("td.verdict")
    words = [one.split("\n")[0] for one in found.all_inner_texts()]
    assert {"worse", "better", "no significant change"} <= set(words)
    for box in (one.bounding_box() for one in found.all()):
        assert box["x"] >= 0 and box["width"] > 20 and box["x"] + box["width"] <= width
    row = page.locator("tr.worse", has_text=LONG)
    assert row.locator("td[data-of=cost]").inner_text().endswith("ms")
    assert page.locator("section", has_text="memory.rss").locator("td[data-of=cost]").count() == 0


def test_a_row_folds_on_a_phone(show):
    page = show("compare", 390)
    row = page.locator("tr.worse", has_text=LONG)
    assert row.evaluate("one => getComputedStyle(one).display") == "grid"
    label = row.locator("td[data-of=baseline]").evaluate("one => getComputedStyle(one, '::before').content")
    assert label == '"baseline"'


def test_what_did_not_change_does_not_hide_what_did(show):
    page = show("many", 1200)
    spans = page.locator("section", has=page.locator("h2", has_text="Spans"))
    assert spans.locator("tbody").first.locator("tr").count() == 2
    assert spans.locator("tr.same").count() == 61 and spans.locator("tr.same:visible").count() == 0
    spans.locator("summary").focus()
    page.keyboard.press("Enter")
    assert spans.locator("tr.same:visible").count() == 61
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_words_of_a_comparison_do_not_lie_on_each_other(show):
    page = show("compare", 1200)
    assert page.evaluate("""[...document.querySelectorAll('table.plain tr')].flatMap(row => {
        const boxes = [...row.children].map(one => one.getBoundingClientRect());
        return boxes.slice(1).filter((box, i) => box.left < boxes[i].right - 1)})""") == []
    assert page.evaluate("""[...document.querySelectorAll('table.plain td, table.plain th')]
        .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)""") == []


@pytest.mark.parametrize("width", [390, 1200])
def test_a_trend_is_a_line_with_its_levels(show, width):
    page = show("trend60", width)
    chart = page.locator("section.trend", has=page.locator("h2", has_text="step"))
    path = chart.locator("path.course").get_attribute("d")
    assert path.count("M") == 1 and path.count("L") == 59
    assert chart.locator("path.course").evaluate("one => getComputedStyle(one).stroke") != "none"
    assert chart.locator("path.course").bounding_box()["width"] > width * 0.6
    assert chart.locator(".area circle").count() + chart.locator(".area path.far").count() == 60
    rows = chart.locator("tbody tr")
    assert rows.count() == 2 and chart.locator(".area line.level").count() == 3
    sizes = chart.locator("text.size").all_text_contents()
    assert [one.split(" %")[0] for one in chart.locator("tbody td[data-of=by]").all_inner_texts()] == [
        one.split(" %")[0] for one in sizes]
    assert sizes[0].startswith("+") and sizes[1].startswith("-")


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", ["trend60", "trend2000"])
def test_words_of_a_chart_keep_their_size_and_distance(show, name, width):
    page = show(name, width)
    boxes = page.evaluate("""[...document.querySelectorAll('.area')].map(area => [...area.querySelectorAll('text')]
        .filter(one => one.getClientRects().length).map(one => {
            const box = one.getBoundingClientRect();
            return [box.left, box.top, box.right, box.bottom, one.textContent]}))""")
    assert len(boxes) == 2
    for words in boxes:
        assert len(words) > 5
        for i, (left, top, right, bottom, text) in enumerate(words):
            assert bottom - top > 10 and left >= 0 and right <= width, text
            for other in words[:i]:
                apart = right <= other[0] or other[2] <= left or bottom <= other[1] + 4 or other[3] <= top + 4
                assert apart, (text, other[4])


def test_many_runs_are_a_band(show):
    page = show("trend2000", 1200)
    chart = page.locator("section.trend", has=page.locator("h2", has_text="step"))
    assert chart.locator("path.band").count() == 1
    assert 100 < chart.locator("path.course").get_attribute("d").count("L") <= 600
    assert chart.locator(".area circle").count() == 0
    far = chart.locator(".area path.far").count()  # none of the runs far out is lost
    assert far == 20 and f"beyond the scale: {far}" in chart.inner_text()


def test_columns_without_a_word_are_left_out(show):
    page = show("model", 1200)
    heads = page.locator("#layers thead th").all_inner_texts()
    assert "Not counted" in heads and "Module" not in heads
    assert page.locator("#layers tbody tr").count() == 3


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_reached_by_keys(show, name):
    page = show(name, 1200)
    for _ in range(20):
        page.keyboard.press("Tab")
        told = page.evaluate("""[document.activeElement.className,
            getComputedStyle(document.activeElement).outlineStyle]""")
        if "sheet" in told[0]:
            break
    assert "sheet" in told[0] and told[1] == "solid"


@pytest.mark.parametrize("name", PAGES)
def test_paper_has_all_of_it(show, name):
    page = show(name, 1000, "dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("""[...document.querySelectorAll('.sheet')].every(
        one => getComputedStyle(one).maxHeight === 'none' && getComputedStyle(one).overflowY === 'visible')""")


CONTRAST = """() => {
    const light = text => {
        const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(one => one / 255)
            .map(one => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b};
    const behind = one => {
        for (; one; one = one.parentElement) {
            const colour = getComputedStyle(one).backgroundColor;
            if (!/, 0\\)$/.test(colour)) return colour}
        return 'rgb(255, 255, 255)'};
    return [...document.querySelectorAll('h1, h2, p, td, th, li, dt, dd, small, figcaption, text, a, summary')]
        .filter(one => one.textContent.trim() && one.getClientRects().length).map(one => {
            const style = getComputedStyle(one);
            const pair = [light(one.tagName === 'text' ? style.fill : style.color), light(behind(one))].sort();
            return [(pair[1] + 0.05) / (pair[0] + 0.05), one.textContent.slice(0, 40)]})
        .filter(one => one[0] < 4.5)}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_words_stand_out(show, name, scheme):
    assert show(name, 1200, scheme).evaluate(CONTRAST) == []
