"""What the browser tests share: pages, Chromium, and that no page ever complains or asks for anything."""
import os
import pathlib
import shutil
import subprocess

import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TARE_BUILD", ROOT / "build")).resolve()
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120  # seconds until a hanging command or page fails its test


def run(*command, **options):
    env = {key: value for key, value in os.environ.items() if not key.startswith("TARE_")}
    return subprocess.run([str(word) for word in command], env=env, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                          check=True, **options)


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Pages by name: made by hand (rich, large, hostile, bare, flamegraph), or of a real run (small, million, phased).
    """
    folder = tmp_path_factory.mktemp("pages")

    def of_run(path, steps):
        trace = folder / (path.stem + ".tare")
        # Room for all of it: on a busy machine, too, nothing is dropped.
        program = "phased" if path.stem == "phased" else "shown"
        run(BUILD / "tare", "run", "-q", "--no-history", "--buffer-size", "256M", "-o", trace, "--",
            BUILD / "tests" / "victim" / program, steps, cwd=folder, stdout=subprocess.DEVNULL)
        run(BUILD / "tare", "report", "--html", "-o", path, trace, cwd=folder)

    def page(name):
        path = folder / (name + (".svg" if name.startswith("flamegraph") else ".html"))
        if not path.exists():
            steps = {"small": 200, "million": 12000, "phased": 40}.get(name)
            if steps:
                of_run(path, steps)
            elif name == "sampled":
                with open(folder / "sampled.tare", "wb") as out:
                    run(BUILD / "tests" / "browser" / "make_stacks", "/home/user/fetch.py", stdout=out)
                run(BUILD / "tare", "report", "--html", "-o", path, folder / "sampled.tare")
            else:
                with open(path, "wb") as out:
                    run(BUILD / "tests" / "browser" / "make_page", *name.split(), stdout=out)
        return path

    return page


@pytest.fixture(scope="session")
def chromium():
    path = next((shutil.which(name) for name in BROWSERS if shutil.which(name)), None)
    assert path, "there is no Chromium: run `tools/setup test`"
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def show(chromium, pages):
    """Opens a page from disk. Whatever it logs as an error, throws, asks or requests fails the test at its end."""
    problems, contexts = [], []

    def watch(page, path):
        page.set_default_timeout(PATIENCE * 1000)
        page.on("console", lambda message: message.type in ("error", "warning") and
                problems.append("console: " + message.text))
        page.on("pageerror", lambda error: problems.append("thrown: %s" % error))
        page.on("dialog", lambda dialog: (problems.append("dialog: " + dialog.message), dialog.dismiss()))
        page.on("request", lambda request: request.url != path.as_uri() and not request.url.startswith("data:")
                and problems.append("request: " + request.url))

    def open_page(name, **options):
        options = {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light", **options}
        contexts.append(chromium.new_context(**options))
        page, path = contexts[-1].new_page(), pages(name)
        watch(page, path)
        page.goto(path.as_uri())
        page.wait_for_selector(":root[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
