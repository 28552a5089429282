"""The page of a comparison: both schemes, narrow and wide, and that it never complains or asks for anything."""
import pytest

from conftest import BUILD, run


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    for name, steps in (("base", 20), ("head", 60)):
        run(BUILD / "tare", "run", "-q", "--no-history", "-o", folder / (name + ".tare"), "--",
            BUILD / "tests" / "victim" / "phased", steps, cwd=folder)
    run(BUILD / "tare", "compare", "--html", "-o", folder / "page.html", folder / "base.tare", folder / "head.tare")
    return folder / "page.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_the_page_of_a_comparison(chromium, page_file, scheme, width):
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    assert page.title() == "Tare: a comparison"
    assert page.locator("table tbody tr").count() > 10
    assert page.locator("h2").first.inner_text() == "The whole"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # tables scroll by themselves
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = sum(int(part) for part in background.strip("rgb()").split(",")) < 3 * 128
    assert dark == (scheme == "dark")
    assert not complaints and asked == [page_file.as_uri()]
    context.close()


# ---- stack samples ---------------------------------------------------------------------------------
# Figures are of make_stacks.c. Active time is 1.2 s in both runs: 1 s of MainThread, 0.2 s of worker. In the first one
# dumps has 600 ms of it; in the second one 200 ms, and the new function extra 400 ms.
@pytest.fixture(scope="module")
def stacks_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stacks")
    for name, more in (("base", ()), ("head", ("changed",))):
        with open(folder / (name + ".tare"), "wb") as out:
            run(BUILD / "tests" / "browser" / "make_stacks", "/home/user/fetch.py", *more, stdout=out)
    run(BUILD / "tare", "compare", "--html", "-o", folder / "page.html", folder / "base.tare", folder / "head.tare")
    return folder / "page.html"


@pytest.fixture
def stacks_page(chromium, stacks_file):
    context = chromium.new_context(viewport={"width": 1300, "height": 900})
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(stacks_file.as_uri())
    page.wait_for_selector(".flamegraph[data-ready=yes]")
    yield page
    assert not complaints
    context.close()


def box(page, name):
    return page.locator(f'.flamegraph .f[data-name^="{name}"]')


def title(page, name):
    return box(page, name).locator("title").text_content()


def test_the_difference_of_two_call_trees(stacks_page):
    page = stacks_page
    assert "candidate 400 ms, 33.3 %\nbaseline 0 ns, 0.0 %\nchange +33.3 percentage points" in title(page, "extra")
    assert "candidate 200 ms, 16.7 %" in title(page, "dumps") and "baseline 600 ms, 50.0 %" in title(page, "dumps")
    assert "change -33.3 percentage points" in title(page, "dumps")
    assert box(page, "extra").locator("rect").get_attribute("class") == "more4"
    assert box(page, "dumps").locator("rect").get_attribute("class") == "less4"
    assert box(page, "MainThread").locator("rect").get_attribute("class") == "more0"
    whole = page.locator("#frames").bounding_box()["width"]
    assert box(page, "extra").locator("rect").bounding_box()["width"] / whole == pytest.approx(1 / 3, abs=0.01)


def test_search_and_zoom_in_the_difference(stacks_page):
    page = stacks_page
    page.locator("#search").fill("json")
    assert page.locator("#found").text_content() == "1 hit, 16.7 %"
    page.locator("#search").fill("")
    box(page, "extra").click()
    whole = page.locator("#frames").bounding_box()["width"]
    assert box(page, "extra").locator("rect").bounding_box()["width"] / whole == pytest.approx(1, abs=0.01)
    page.locator("#reset").click()
    assert box(page, "extra").locator("rect").bounding_box()["width"] / whole == pytest.approx(1 / 3, abs=0.01)


def test_functions_whose_share_changed(stacks_page):
    rows = stacks_page.locator("table", has=stacks_page.locator("th", has_text="Change (points)")).locator("tbody tr")
    told = [row.split("\t") for row in rows.evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.textContent).join('\\t'))")]
    assert told == [["dumps", "__init__.py", "50.0 %", "16.7 %", "-33.3 %"],
                    ["extra", "fetch.py", "0.0 %", "33.3 %", "+33.3 %"]]


def test_a_comparison_without_stacks_has_no_script(page_file):
    text = page_file.read_text()
    assert "<script" not in text and "script-src" not in text
