"""The site of the laboratory and the template in a real browser."""

import json
import os
import threading
import time

import pytest
from browsing import (
    AXE,
    FULL_SET,
    barriers,
    boxes,
    check_page,
    check_scrubbed,
    fonts_of,
    too_wide,
    visit,
    watched,
)
from lengths import long_but

from paritylab.site import serve

pytestmark = pytest.mark.usefixtures("whole_paper_all_along")
PAGES = ("index.html", "me2025.html", "guesses.html", "play.html", "watch.html", "results.html", "docs/index.html",
         "docs/tutorial.html", "docs/how-to/add-a-paper.html", "docs/reference/api.html", "docs/reference/cli.html",
         "docs/explanation/theory/alignment.html", "docs/explanation/engines.html",
         "docs/explanation/performance.html", "source/me2025/width.html")
WITH_FORMULAS = ("docs/explanation/theory/alignment.html",)
IN_BOTH = ("index.html", "me2025.html", "play.html", "watch.html")


@pytest.mark.parametrize("name", long_but(PAGES, "index.html"))
def test_every_page_opens_fits_any_width_and_is_accessible(page, root, name):
    check_page(page, root, name, name in IN_BOTH)


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
    visit(page, root, "me2025.html")
    assert page.evaluate(ground) == light  # it is remembered


def test_claims_can_be_chosen_and_a_command_copied(page, root):
    visit(page, root, "me2025.html")
    shown = "[...document.querySelectorAll('.card')].filter(card => !card.hidden).length"
    assert page.evaluate(shown) == 2
    page.fill("#find", "guesses")
    assert page.evaluate(shown) == 1
    page.fill("#find", "")
    page.uncheck("input[value='holds']")
    assert page.evaluate(shown) == 0
    page.check("input[value='holds']")
    page.click(".card:not([hidden]) .copy")
    page.wait_for_function("document.querySelector('.card:not([hidden]) .copy').textContent !== 'Copy'")


def test_the_menu_opens_on_a_narrow_screen(page, root):
    page.set_viewport_size({"width": 360, "height": 800})
    visit(page, root, "index.html")
    assert not page.is_visible("#nav")
    page.click("#menu")
    assert page.is_visible("#nav")
    page.click("#nav >> text=Guesses")
    assert page.url.endswith("guesses.html")


def test_a_page_of_a_paper_runs_its_own_script(page, root):
    visit(page, root, "guesses.html")
    assert page.inner_text("#told") == "Random guesses find the support after half of all supports (2 claims)"


@pytest.mark.long
def test_every_recorded_run_can_be_scrubbed_and_played(page, root):
    check_scrubbed(page, root)


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
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/docs/explanation/theory/alignment.html")
        assert page.evaluate("document.fonts.ready.then(fonts => [...fonts].map(font => font.status))") == ["loaded"]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
