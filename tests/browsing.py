"""A site in a real browser: Playwright with Debian's Chromium, files from disk and loopback only.

Which fonts a machine has must not matter. The tests run with DejaVu alone; what depends on fonts also with a full set.
"""

import contextlib
import functools
import http.server
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import matplotlib
import pytest

from paritylab.cli import reference
from paritylab.site import build

AXE = (Path(__file__).parent / "vendor" / "axe" / "axe.min.js").read_text(encoding="utf-8")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")


def chromium():
    """The browser, installed if it is missing and this may install it; None where it cannot be had."""
    import fcntl

    with open(Path(tempfile.gettempdir()) / "paritylab-chromium.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one test process installs, the others wait
        if shutil.which("chromium") is None and shutil.which("apt-get") and os.geteuid() == 0:
            for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    subprocess.run(command, capture_output=True, timeout=600, env=os.environ | {
                        "DEBIAN_FRONTEND": "noninteractive"})
    return shutil.which("chromium")


BUNDLED = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
CONFIGURATION = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>{told}<cachedir>{cache}</cachedir></fontconfig>"""
FULL_SET = f"""<include ignore_missing="yes">{os.environ.get("FONTCONFIG_FILE", "/etc/fonts/fonts.conf")}</include>
<dir>{BUNDLED}</dir><match target="scan"><test name="family"><string>STIXGeneral</string></test>
<edit name="family" mode="prepend"><string>Palatino</string></edit></match>"""
"""All that the machine has, and another face for the text in any case."""


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """Starts browsers that see the fonts that they are told of."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    path = chromium()
    if path is None:
        pytest.skip("Chromium is not there and could not be installed (as root: apt-get install chromium)")
    with api.sync_playwright() as playwright, contextlib.ExitStack() as opened:

        def start(fonts):
            folder = tmp_path_factory.mktemp("fonts")
            (folder / "fonts.conf").write_text(CONFIGURATION.format(told=fonts, cache=folder / "cache"))
            told = os.environ | {"FONTCONFIG_FILE": str(folder / "fonts.conf")}
            browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), env=told)
            opened.callback(browser.close)
            return browser

        yield start


@pytest.fixture(scope="module")
def browser(launch, tmp_path_factory):
    """With DejaVu alone, as on a bare machine."""
    folder = tmp_path_factory.mktemp("dejavu")
    for font in BUNDLED.glob("DejaVu*.ttf"):
        shutil.copy(font, folder)
    return launch(f"<dir>{folder}</dir>")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    for name, data in build.build(folder / "nothing", written=reference.pages()).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def address(root):
    """Of the site on loopback. Asked for fonts, Chromium loads a page again, which it may not where it is a file."""
    handler = functools.partial(Quiet, directory=root)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def page(browser):
    with watched(browser) as page:
        yield page


@contextlib.contextmanager
def watched(browser):
    """A page that fails the test if anything went wrong in it."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light")
    page = context.new_page()
    errors = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("requestfailed", lambda request: None if left(request) else errors.append(request.url))
    yield page
    assert errors == []
    context.close()


def left(request):
    """Whether a worker was not begun because the page was left for the next one."""
    return request.url.startswith("blob:") and request.failure == "net::ERR_ABORTED"


def visit(page, root, name):
    path, _, place = name.partition("#")
    page.goto((root / path).as_uri() + (f"#{place}" if place else ""))


def check_page(page, root, name, in_both):
    """A page fits any width and keeps nobody out; some are looked at in dark too."""
    visit(page, root, name)
    assert too_wide(page) == []
    page.set_viewport_size({"width": 900, "height": 900})
    page.evaluate(AXE)
    assert barriers(page, ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]) == []
    if in_both:  # only colours are different
        page.emulate_media(color_scheme="dark")
        assert barriers(page, ["color-contrast", "link-in-text-block"]) == []


def check_scrubbed(page, root):
    """Every recorded run can be moved through and played."""
    visit(page, root, "watch.html")
    for name in page.evaluate("[...document.getElementById('pick').options].map(option => option.value)"):
        page.select_option("#pick", name)
        page.wait_for_function(f"document.getElementById('command').textContent && location && '{name}'"
                               " === document.getElementById('pick').value")
        page.wait_for_function("document.getElementById('step').textContent.startsWith('step 0 ')")
        pixels = "document.querySelector('.heat').toDataURL()"
        first = page.evaluate(pixels)
        page.focus("#scrub")
        page.keyboard.press("End")
        assert page.evaluate(pixels) != first, name
        last = page.inner_text("#step")
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("#step") != last
        assert page.evaluate("document.querySelectorAll('#panels .chart svg path').length") >= 3
    page.keyboard.press("Home")
    page.click("#play")
    page.wait_for_function("Number(document.getElementById('scrub').value) > 5")
    page.click("#play")
    still = page.input_value("#scrub")
    page.wait_for_timeout(100)
    assert page.input_value("#scrub") == still


def too_wide(page):
    """The widths of a window, down to the narrowest, that do not hold the page."""
    found = []
    for width in (1600, 768, 360):
        page.set_viewport_size({"width": width, "height": 900})
        found += [width] if page.evaluate("document.documentElement.scrollWidth") > width else []
    return found


def barriers(page, rules):
    """What axe finds that keeps people out; in formulas it could judge the colour alone, that of the text around."""
    told = {"runOnly": rules, "resultTypes": ["violations"], "preload": False}
    found = page.evaluate("told => axe.run({exclude: ['math']}, told)", told)["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")]


def boxes(page):
    """Widths and heights of all formulas."""
    page.evaluate("document.fonts.ready")
    shape = "({width, height}) => [width, height]"
    return page.evaluate(f"[...document.querySelectorAll('math')].map(math => ({shape})(math.getBoundingClientRect()))")


def fonts_of(page, selector):
    """The fonts that draw the text of an element, and whether each came with the page."""
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    until, found = time.monotonic() + 10, []
    while not found and time.monotonic() < until:  # what was just put there may not be drawn yet
        found = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    session.detach()
    return {(font["familyName"], font["isCustomFont"]) for font in found}
