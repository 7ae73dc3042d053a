"""The site in a real browser: Playwright with Debian's Chromium, files from disk and loopback only.

Which fonts a machine has must not matter. The tests run with DejaVu alone; what depends on fonts also with a full set.
"""

import contextlib
import fcntl
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import matplotlib
import pytest
from lengths import long_but

from paritylab.site import build, serve

AXE = (Path(__file__).parent / "vendor" / "axe" / "axe.min.js").read_text(encoding="utf-8")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")
PAGES = ("index.html", "barak2022.html", "abbe2024.html", "glasgow2023.html", "daniely2020.html", "figure7.html",
         "alignment.html", "play.html", "watch.html", "results.html", "docs/index.html", "docs/tutorial.html",
         "docs/how-to/add-a-paper.html", "docs/reference/api.html", "docs/reference/learners.html",
         "papers/me2025/errata.html", "docs/reference/reproduction.html", "docs/explanation/theory/alignment.html",
         "docs/explanation/theory/any-target.html", "docs/explanation/engines.html",
         "docs/explanation/performance.html",
         "source/barak2022/amended_table.html")
WITH_FORMULAS = ("docs/explanation/theory/alignment.html", "docs/explanation/theory/any-target.html")
IN_BOTH = ("index.html", "barak2022.html", "figure7.html", "alignment.html", "play.html", "watch.html",
           "papers/me2025/errata.html")


def chromium():
    """The browser, installed if it is missing and this may install it; None where it cannot be had."""
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
    for name, data in build.build(folder / "nothing").items():
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


@pytest.mark.parametrize("name", long_but(PAGES, "index.html"))
def test_every_page_opens_fits_any_width_and_is_accessible(page, root, name):
    visit(page, root, name)
    assert too_wide(page) == []
    page.set_viewport_size({"width": 900, "height": 900})
    page.evaluate(AXE)
    assert barriers(page, ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]) == []
    if name in IN_BOTH:  # only colours are different
        page.emulate_media(color_scheme="dark")
        assert barriers(page, ["color-contrast", "link-in-text-block"]) == []


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


@pytest.mark.long
def test_pages_fit_and_formulas_look_the_same_whatever_fonts_there_are(page, launch, root, address):
    collect = """() => {
        const all = [...document.querySelectorAll("mi, mo, mn, mtext")];
        const signs = new Map(all.map((each) => [each.outerHTML, each]));
        const probe = document.createElementNS("http://www.w3.org/1998/Math/MathML", "math");
        probe.id = "probe";
        probe.append(...[...signs.values()].map((each) => each.cloneNode(true)));
        document.querySelector("article").append(probe);
        return signs.size;
    }"""
    with watched(launch(FULL_SET)) as other:
        for name in PAGES:
            visit(other, root, name)
            assert too_wide(other) == [], name
        for name in WITH_FORMULAS:
            for each in (page, other):
                each.goto(f"{address}/{name}")
                assert too_wide(each) == []
            assert boxes(other) == [pytest.approx(box, abs=0.5) for box in boxes(page)]
            texts = [fonts_of(each, "article p") for each in (page, other)]
            assert texts[0] != texts[1]  # else the two sets were the same, and nothing was shown
            for each in (page, other):
                assert each.evaluate(collect) > 50
                assert fonts_of(each, "#probe") == {("Paritylab Math", True)}, name


def test_wide_formulas_scroll_in_their_own_boxes_also_by_keyboard(page, root):
    visit(page, root, "docs/explanation/theory/alignment.html")
    assert page.evaluate("document.querySelectorAll('.formula[tabindex]').length") == 0
    page.add_style_tag(content="article { font-size: 2.5rem; }")
    page.set_viewport_size({"width": 360, "height": 900})
    page.wait_for_selector(".formula[tabindex]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    wide = "box => box.scrollWidth > box.clientWidth"
    count = page.evaluate(f"[...document.querySelectorAll('.formula')].filter({wide}).length")
    assert 10 < count == page.evaluate("document.querySelectorAll('.formula[tabindex]').length")
    page.evaluate(AXE)
    assert barriers(page, ["scrollable-region-focusable"]) == []
    for kind in (".formula[tabindex]", ".scroll.math"):
        page.focus(kind)
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"document.querySelector({kind!r}).scrollLeft > 0")


def test_light_and_dark_by_preference_and_by_switch(page, root):
    ground = "getComputedStyle(document.body).backgroundColor"
    visit(page, root, "index.html")
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert light != dark
    page.click("#theme")
    assert page.evaluate(ground) == light
    visit(page, root, "barak2022.html")
    assert page.evaluate(ground) == light  # it is remembered


def test_claims_can_be_chosen_and_a_command_copied(page, root):
    visit(page, root, "barak2022.html")
    shown = "[...document.querySelectorAll('.card')].filter(card => !card.hidden).length"
    assert page.evaluate(shown) == 51
    page.fill("#find", "grokking")
    assert 0 < page.evaluate(shown) < 10
    page.fill("#find", "")
    page.uncheck("input[value='holds']")
    assert 0 < page.evaluate(shown) < 51
    page.click(".card:not([hidden]) .copy")
    page.wait_for_function("document.querySelector('.card:not([hidden]) .copy').textContent !== 'Copy'")


def test_the_menu_opens_on_a_narrow_screen(page, root):
    page.set_viewport_size({"width": 360, "height": 800})
    visit(page, root, "index.html")
    assert not page.is_visible("#nav")
    page.click("#menu")
    assert page.is_visible("#nav")
    page.click("#nav >> text=Figure 7")
    assert page.url.endswith("figure7.html")


def test_the_table_sorts_and_tells_about_cells_on_hover_and_by_keyboard(page, root):
    visit(page, root, "figure7.html")
    column = "[...document.querySelectorAll('#table tbody tr')].map(row => row.cells[8].querySelector('b').textContent)"
    assert len(page.evaluate(column)) == 18
    page.click("button[aria-label='Sort by k = 3, B = 32']")
    times = [int(text.replace(",", "")) for text in page.evaluate(column) if text[0].isdigit()]
    assert times == sorted(times)
    page.click("button[aria-label='Sort by k = 3, B = 32']")
    times = [int(text.replace(",", "")) for text in page.evaluate(column) if text[0].isdigit()]
    assert times == sorted(times, reverse=True)
    page.click("button[aria-label='Sort by setting']")
    page.hover("td[data-setting='i'][data-column='7']")
    told = page.inner_text("#told")
    assert "published 318" in told
    assert "Learning rate" in told
    assert "solved" in told
    page.focus("#table tbody td[tabindex='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "Setting (ii), k = 2, B = 4" in page.inner_text("#told")
    page.select_option("#degree", "4")
    assert page.evaluate("document.querySelectorAll('#table tbody tr')[0].cells.length") == 6


def test_the_alignment_chart_responds(page, root):
    visit(page, root, "alignment.html")
    lines = "document.querySelectorAll('#chart path').length"
    paths = "[...document.querySelectorAll('#chart path')].map(path => path.getAttribute('d')).join()"
    assert page.evaluate(lines) == 4
    page.check("input[value='sparse-rademacher:0.2']")
    assert page.evaluate(lines) == 5
    before = page.evaluate(paths)
    page.select_option("#axis", "linear")
    linear = page.evaluate(paths)
    page.select_option("#degree", "3")
    assert len({before, linear, page.evaluate(paths)}) == 3
    page.focus("#place")
    page.keyboard.press("Home")
    assert "d = 7" in page.inner_text("#which")
    assert "10⁻" in page.inner_text("#legend")
    page.hover("#chart svg", position={"x": 300, "y": 100})
    assert page.inner_text("#which") != "d = 7"
    page.select_option("#network", "four layers")
    assert page.is_visible("[data-network='four layers']")
    assert not page.is_visible("[data-network='two layers']")


@pytest.mark.long
def test_every_recorded_run_can_be_scrubbed_and_played(page, root):
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


@pytest.mark.long
def test_the_live_page_shows_a_sweep(page, tmp_path):
    from paritylab import Parity, Setup
    from paritylab.storage import status

    server = serve.server(tmp_path)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        setup = Setup(Parity(n=8, k=2))
        jobs = [{"setup_id": setup.id, "setup": json.loads(setup.to_json()), "engine": "jax", "seed": 0, "first": 0,
                 "runs": 20}]
        with status.Announcement(tmp_path / "store", jobs) as announcement:
            announcement.train([0])
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/live.html")
            page.wait_for_selector("#live table")
            assert "running" in page.inner_text("#live")
            assert "0 of 20" in page.inner_text("#live")
            (path,) = (tmp_path / "store" / status.FOLDER).glob("*.json")
            told = json.loads(path.read_text()) | {"host": "<b>elsewhere</b>"}
            (path.parent / "vanished.json").write_text(json.dumps(told))
            os.utime(path.parent / "vanished.json", (time.time() - 600,) * 2)
            (path.parent / "odd.json").write_text("[")
            page.wait_for_selector("#live:has-text('Not heard of since')")
            assert "odd.json is no announcement" in page.inner_text("#live")
            for name in ("vanished", "odd"):
                (path.parent / f"{name}.json").unlink()
        page.wait_for_selector("#state:has-text('Nothing is training')")
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/docs/explanation/theory/any-target.html")
        assert page.evaluate("document.fonts.ready.then(fonts => [...fonts].map(font => font.status))") == ["loaded"]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
