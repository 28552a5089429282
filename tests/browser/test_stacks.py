"""Flame graphs of sampled stacks in Chromium: in the page, and as an SVG file.

Figures are of tests/unit/emit_stack_tree.h."""
import re

import pytest
from playwright.sync_api import expect

ATTACK = "</script>]]></svg><img src=x onerror=alert(1)>"


# ---- in the page ---------------------------------------------------------------------------------
def graph_of(page):
    return page.locator("#stacks-graph")


def box(page, name, at=0):
    return graph_of(page).locator("button", has_text=name).nth(at)


def choose(page, name):
    page.locator("#stacks").get_by_role("button", name=name, exact=True).click()


def share(page, name, at=0):
    """The width of a box as part of the graph."""
    return box(page, name, at).bounding_box()["width"] / graph_of(page).bounding_box()["width"]


def levels(page):
    return dict(graph_of(page).locator("button").evaluate_all(
        "all => all.map(one => [one.textContent, Number(one.getAttribute('aria-level'))])"))


def total(page):
    return re.search(r"samples, ([\d.]+ \w+)", page.locator("#stacks-lead").text_content()).group(1)


def test_a_page_has_its_stacks(show):
    page = show("rich")
    assert page.locator("#nav a", has_text="Code").count() == 1
    lead = page.locator("#stacks-lead").text_content()
    assert lead.startswith("3 threads, 2,622 stack samples, 16.2 s of active time.")
    depth = levels(page)
    assert depth["train.py (4120)"] == 1 and depth["MainThread (4120)"] == 2 and depth["main · train.py"] == 4
    # 9,926 ms of 16,233 ms; what a thread other than the leading one waits for work is not active.
    assert share(page, "MainThread (4120)") == pytest.approx(9.926 / 16.233, abs=0.002)
    assert share(page, "Image.resize") == pytest.approx(2.25 / 16.233, abs=0.002)
    assert graph_of(page).get_by_role("treeitem", name=re.compile("^waiting for a pipe, 1.58 s")).count() == 1


def test_pages_without_stacks_have_no_such_part(show):
    page = show("bare")
    assert page.locator("#stacks").is_hidden()
    assert page.locator("#nav a", has_text="Code").count() == 0


def test_wall_and_cpu_time(show):
    page = show("rich")
    choose(page, "Wall")
    assert total(page) == "26.2 s"
    assert share(page, "_pin_memory_loop") == pytest.approx(8.31 / 26.233, abs=0.002)
    assert graph_of(page).get_by_role("treeitem", name=re.compile("^waiting for a lock, 8.10 s")).count() == 1
    choose(page, "CPU")
    assert total(page) == "13.1 s"
    assert graph_of(page).locator(".wait").count() == 0
    assert page.locator("#stacks-time button[aria-pressed=true]").all_text_contents() == ["CPU"]
    choose(page, "Active")
    assert total(page) == "16.2 s"


def test_one_thread(show):
    page = show("rich")
    options = page.locator("#stacks-thread option").all_text_contents()
    assert options[0] == "All threads" and len(options) == 4
    page.locator("#stacks-thread").select_option(label=next(text for text in options if "MainThread (4134)" in text))
    assert total(page) == "6.10 s"
    assert box(page, "Conv2d").count() == 0
    assert share(page, "_worker_loop") == pytest.approx(1, abs=0.01)
    assert page.locator("#stacks-lead").text_content().startswith("MainThread (4134), ")
    page.locator("#stacks-thread").select_option("-1")
    assert total(page) == "16.2 s"


def test_lines_instead_of_functions(show):
    page = show("rich")
    assert graph_of(page).locator("button", has_text="Photos.__getitem__").count() == 1
    choose(page, "Lines")
    texts = graph_of(page).locator("button", has_text="Photos.__getitem__").all_text_contents()
    assert sorted(texts) == ["Photos.__getitem__ · data.py:%d" % line for line in (27, 29, 31)]
    # Both lines of train_epoch that call something are below main.
    assert levels(page)["train_epoch · train.py:42"] == levels(page)["train_epoch · train.py:38"] == 5


def test_reversed(show):
    page = show("rich")
    choose(page, "Callers below")
    assert levels(page)["ImageFile.load · ImageFile.py"] == 1
    assert graph_of(page).locator("button[aria-level='2']", has_text="Photos.__getitem__ · data.py").count() == 2
    assert total(page) == "16.2 s"
    first = graph_of(page).locator("button[aria-level='1']")
    shares = [one.bounding_box()["width"] for one in first.all()]
    assert shares == sorted(shares, reverse=True)
    # Everything that waits for the disk is together, whoever waits.
    disk = graph_of(page).get_by_role("treeitem", name=re.compile("^waiting for a disk, 620 ms"))
    disk.click()
    below = graph_of(page).locator("button[aria-level='2']").all_text_contents()
    assert below == ["save · serialization.py", "open · Image.py", "<module> · __init__.py"]


def test_search_tells_the_share(show):
    page = show("rich")
    page.fill("#stacks-search", "image.py")
    told = page.locator("#stacks-hits").text_content()
    assert told == "2 hits, 2.50 s, 15.4 %"
    assert graph_of(page).locator("button.hit").count() == 2
    page.fill("#stacks-search", "PIL")  # a package, whole
    assert page.locator("#stacks-hits").text_content().startswith("3 hits, 5.72 s")
    page.fill("#stacks-search", "nothing has this name")
    assert page.locator("#stacks-hits").text_content() == "no hits"
    page.fill("#stacks-search", "")
    page.locator("#stacks-legend button", has_text="waiting for a pipe").click()
    assert page.input_value("#stacks-search") == "waiting for a pipe"
    assert page.locator("#stacks-hits").text_content() == "1 hit, 1.58 s, 9.7 %"
    page.locator("#stacks-legend button", has_text="waiting for a pipe").click()
    assert page.locator("#stacks-hits").text_content() == ""


def test_zoom_by_mouse_and_keys(show):
    page = show("rich")
    box(page, "upload").click()
    assert share(page, "upload") == pytest.approx(1, abs=0.01)
    assert page.locator("#stacks-path").text_content() == "In upload · storage.py"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "Session.request · sessions.py"
    page.keyboard.press("Enter")
    assert "In Session.request" in page.locator("#stacks-path").text_content()
    page.locator("#stacks-all").click()
    assert page.locator("#stacks-path").text_content() == ""
    assert page.locator("#stacks-all").is_disabled()
    box(page, "upload").click()
    page.keyboard.press("Escape")
    assert share(page, "upload") < 0.1


def test_a_tooltip_has_place_and_figures(show):
    page = show("rich")
    box(page, "Image.resize").hover()
    told = page.locator("#tip span").all_text_contents()
    assert told == ["PIL/Image.py:2329", "package PIL", "2.25 s, 13.9 % of all", "self 2.25 s, 13.9 %"]
    box(page, "Photos.__getitem__").hover()
    told = page.locator("#tip").text_content()
    assert "data.py:20" in told and "self 338 ms" in told and "most self time in line 31: 310 ms" in told
    box(page, "ImageFile.load").hover()
    assert "waiting for a CPU 95.0 ms" in page.locator("#tip").text_content()


def test_names_of_functions_are_shown_not_run(show):
    page = show("hostile")
    assert page.locator("img").count() == 0
    assert graph_of(page).get_by_role("treeitem", name=ATTACK).count() >= 1
    assert page.locator("script").count() == 2
    choose(page, "Lines")
    choose(page, "Callers below")
    box(page, "<lambda>").first.hover()
    assert page.locator("#tip b").text_content().startswith("<lambda>")


# ---- as a file -----------------------------------------------------------------------------------
def frame(page, name):
    return page.locator("#frames .f", has=page.locator("title", has_text=name)).first


def wide(page, name):
    return frame(page, name).locator("rect").bounding_box()["width"]


def inner(page):
    return page.locator("#frames").evaluate("element => element.getBoundingClientRect().width")


def test_the_svg_shows_active_time(show):
    page = show("flamegraph")
    assert page.locator("#heading").text_content() == "python train.py --epochs 3"
    assert page.locator("#about").text_content().startswith("16.2 s of active time, 3 threads, 2,622 stack samples")
    assert wide(page, "MainThread (4120)") / inner(page) == pytest.approx(9.926 / 16.233, abs=0.003)
    assert wide(page, "Image.resize") / inner(page) == pytest.approx(2.25 / 16.233, abs=0.003)
    title = frame(page, "Image.resize").locator("title").text_content().split("\n")
    assert title == ["Image.resize · Image.py", "PIL/Image.py:2329", "package PIL", "2.25 s, 13.9 %",
                     "self 2.25 s, 13.9 %"]
    assert page.locator(".key").all_text_contents()[:2] == ["torch 42.6 %", "PIL 33.5 %"]


def test_the_svg_zooms(show):
    page = show("flamegraph")
    frame(page, "upload").click()
    assert wide(page, "upload") == pytest.approx(inner(page), abs=2)
    assert wide(page, "main · train.py") == pytest.approx(inner(page), abs=2)  # callers stay, as wide as the whole
    assert frame(page, "Image.resize").is_hidden()
    assert frame(page, "SSLSocket.read").locator("text").text_content() == "SSLSocket.read · ssl.py"
    page.locator("#reset").click()
    assert frame(page, "Image.resize").is_visible() and page.locator("#reset").is_disabled()
    frame(page, "upload").click()
    frame(page, "upload").click()  # again: out
    assert frame(page, "Image.resize").is_visible()


def test_the_svg_searches(show):
    page = show("flamegraph")
    page.fill("#search", "pil")
    assert page.locator("#found").text_content() == "3 hits, 35.2 %"
    assert page.locator(".f.hit").count() == 3
    page.fill("#search", "waiting for a pipe")
    assert page.locator("#found").text_content() == "1 hit, 9.7 %"
    frame(page, "upload").click()
    assert page.locator("#found").text_content() == "no hits"
    page.fill("#search", "13.9")  # figures are not searched
    page.locator("#reset").click()
    assert page.locator("#found").text_content() == "no hits"
    page.fill("#search", "")
    assert page.locator(".f.hit").count() == 0


def test_the_svg_takes_keys(show):
    page = show("flamegraph")
    page.locator("#frames .f").first.focus()
    assert page.locator("#details").text_content().startswith("train.py (4120)")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert "main · train.py" in page.locator("#details").text_content()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert frame(page, "Conv2d").is_hidden()
    page.keyboard.press("Escape")
    assert frame(page, "Conv2d").is_visible()


@pytest.mark.parametrize("width", [500, 1400, 2200])
def test_the_svg_is_as_wide_as_the_window(show, width):
    page = show("flamegraph", viewport={"width": width, "height": 900})
    assert inner(page) == pytest.approx(width - 20, abs=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 800, "height": 900})
    expect(page.locator("#frames")).to_have_attribute("width", "780")


def test_the_svg_follows_the_theme(show):
    ground = "getComputedStyle(document.getElementById('ground')).fill"
    assert show("flamegraph").evaluate(ground) != show("flamegraph", color_scheme="dark").evaluate(ground)


def test_the_svg_is_a_picture_without_scripts(show, chromium, pages):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages("flamegraph").as_uri())
    assert page.locator("#frames .f").count() > 30
    assert page.locator("#controls").is_hidden()
    context.close()


def test_names_in_the_svg_are_shown_not_run(show):
    page = show("flamegraph hostile")
    assert page.locator("img").count() == 0 and page.locator("script").count() == 1
    assert page.locator("#heading").text_content().startswith("</script>]]></svg><img")
    page.fill("#search", "onerror")
    assert page.locator(".f.hit").count() > 0
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


# ---- hot lines -----------------------------------------------------------------------------------
def test_hot_lines_have_their_code(show):
    page = show("rich")
    rows = page.locator("#hot-lines tbody tr")
    assert rows.count() == 6
    first = rows.first.locator("th, td").all_text_contents()
    assert first == ["train.py:42", "output = model(images.to(device))", "train_epoch → Conv2d.forward", "21.2 %",
                     "3.52 s", "running"]
    assert rows.nth(2).locator("code").text_content().endswith("<img src=x onerror=alert(1)>\"")
    assert rows.nth(5).locator("code").count() == 0
    page.locator("#hot-lines").get_by_role("button", name="data.py:29").click()
    assert page.input_value("#stacks-search") == "data.py:29"
    assert graph_of(page).locator("button.hit").all_text_contents() == ["Photos.__getitem__ · data.py:29"]


def test_what_a_line_calls_takes_most_of_its_time_and_is_shown_without_types(show):
    page = show("rich")
    functions = page.locator("#hot-lines tbody td.text").all_text_contents()
    assert functions[2] == "train_epoch → at::native::(anonymous namespace)::add"
    assert page.locator("#hot-lines tbody td.text span").nth(2).get_attribute("title").endswith("void (*)(int)) const")
    assert functions[3] == "Photos.__getitem__"  # 30 % of it is in Image.resize


def test_the_table_of_lines_has_both_columns_of_a_name(show):
    """`own` and `own_ns`, `inner` and `inner_ns`."""
    page = show("rich")
    page.locator("#tab-lines").click()
    first = page.locator("#panel-lines tbody tr").first.text_content()
    assert "Conv2d.forward" in first and "3.52 s" in first


# ---- in the timeline -------------------------------------------------------------------------------
# Figures are of make_stacks.c: MainThread runs json.dumps for 600 ms, then waits for the network for 400 ms; worker
# runs for 200 ms, then waits for a lock.
def pick(page, x, lane, depth):
    """Clicks on a level of a lane at a part of the run: 28 pixels of ruler; a lane has a label of 19 pixels, two levels
    of 18, and a gap of 9."""
    y = 28 + 64 * ["MainThread", "worker"].index(lane) + 19 + 18 * (depth + 0.5)
    lanes = page.locator("#lanes")
    lanes.click(position={"x": x * lanes.bounding_box()["width"], "y": y})
    return page.locator("#picked")


def test_sampled_threads_over_time(show):
    page = show("sampled")
    lead = page.locator("#timeline-lead").text_content()
    assert lead.startswith("2 threads by stack samples") and "No spans" not in lead
    picked = pick(page, 0.1, "MainThread", 0)
    assert picked.locator("strong").text_content() == "running"
    assert "600 ms from 0" in picked.text_content()
    picked = pick(page, 0.9, "MainThread", 0)
    assert picked.locator("strong").text_content() == "waiting for the network"
    picked = pick(page, 0.6, "worker", 0)
    assert picked.locator("strong").text_content() == "waiting for a lock"
    picked = pick(page, 0.5, "MainThread", 1)
    assert picked.locator("strong").text_content() == "<module> · fetch.py"  # own code, whatever it calls
    assert "1.00 s from 0" in picked.text_content()


def test_the_stack_at_a_click(show):
    page = show("sampled")
    stack = pick(page, 0.3, "MainThread", 1).locator(".picked-stack li")
    assert stack.all_text_contents() == ["dumps · /usr/lib/python3.12/json/__init__.py:231",
                                         "<module> · /home/user/fetch.py:2"]
    stack = pick(page, 0.8, "MainThread", 1).locator(".picked-stack li")
    assert stack.all_text_contents() == ["<module> · /home/user/fetch.py:2"]
    page.keyboard.press("Escape")
    assert page.locator(".picked-stack").count() == 0


def test_search_finds_sampled_functions(show):
    page = show("sampled")
    page.locator("#timeline-search").fill("network")
    assert page.locator("#timeline-hits").text_content() == "1 hit"
    page.locator("#timeline-next").click()
    assert page.locator("#picked strong").text_content() == "waiting for the network"
