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
