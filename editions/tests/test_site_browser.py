"""The pages that editions bring to the site in a real browser."""

import pytest
from browsing import check_page, check_scrubbed, too_wide, visit
from lengths import long_but

PAGES = ("index.html", "barak2022.html", "abbe2024.html", "glasgow2023.html", "daniely2020.html", "beyond.html",
         "figure7.html", "alignment.html", "optimisers.html", "play.html", "watch.html",
         "source/barak2022/table.html")
IN_BOTH = ("index.html", "barak2022.html", "figure7.html", "alignment.html", "play.html", "watch.html")


@pytest.mark.parametrize("name", long_but(PAGES, "figure7.html"))
def test_every_page_opens_fits_any_width_and_is_accessible(page, root, name):
    check_page(page, root, name, name in IN_BOTH)


@pytest.mark.long
def test_every_page_of_the_docs_fits(page, root):
    for path in sorted((root / "docs").rglob("*.html")):
        visit(page, root, path.relative_to(root).as_posix())
        assert too_wide(page) == [], path


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
    check_scrubbed(page, root)
