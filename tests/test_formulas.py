"""Formulas as browsers need them: the right signs, in rows that say what belongs together."""

import re

import pytest

from paritylab.site import formulas
from paritylab.site.documents import directory


def shown(tex):
    """The signs of a formula; spaces as underscores."""
    return re.sub(r"<[^>]*>", "", re.sub(r'<mspace width="[\d.]+em" />', "_", formulas.mathml(tex)))


def rows(tex):
    """A formula with the tags that group."""
    return re.sub(r"</?math[^>]*>|</?m[ino]\b[^>]*>", "", formulas.mathml(tex))


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\Big\{1+x\Big\}", "{1+x}"),
        (r"\Big\|x\Big\|", "‖x‖"),
        (r"a\sim b", "a\N{TILDE OPERATOR}b"),
        (r"K_* := 1", "K\N{ASTERISK OPERATOR}≔1"),
        (r"\eta''^2", "η″2"),
        (r"f''''", "f⁗"),
        (r"\mathbf 1[z]", "\N{MATHEMATICAL BOLD DIGIT ONE}[z]"),
        (r"\mathbb E x", "\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL E}x"),
        (r"d\ln d", "d_ln_d"),
        (r"\cos(t)", "cos(t)"),
        (r"\sin(s)\sin t", "sin(s)_sin_t"),
        (r"2\,\sin t", "2_sin_t"),
        (r"\mathrm{GAL}(d)", "GAL(d)"),
    ],
)
def test_signs_and_spaces_are_those_of_tex(tex, text):
    assert shown(tex) == text


def test_scripts_belong_to_everything_between_the_fences():
    assert rows(r"(a)^2") == "<mrow><msup><mrow>(<mrow>a</mrow>)</mrow>2</msup></mrow>"
    assert rows(r"\{\pm1\}^d") == "<mrow><msup><mrow>{<mrow>±1</mrow>}</mrow>d</msup></mrow>"
    assert rows(r"|a||b|") == "<mrow><mrow>|<mrow>a</mrow>|</mrow><mrow>|<mrow>b</mrow>|</mrow></mrow>"
    assert rows(r"\|f\|_2^2") == "<mrow><msubsup><mrow>‖<mrow>f</mrow>‖</mrow>22</msubsup></mrow>"


@pytest.mark.parametrize("tex", ["a)", "(a", "a|b", "]a,b["])
def test_fences_without_a_partner_stay_as_they_are(tex):
    assert rows(tex) == f"<mrow>{tex}</mrow>"


@pytest.mark.parametrize(
    ("tex", "is_sign"),
    [("-x", True), ("c=-x", True), ("(-1)", True), ("{a}^{-1}", True), ("a-b", False), ("(a)-b", False)],
)
def test_a_minus_with_nothing_before_it_is_a_sign(tex, is_sign):
    assert ('form="prefix">\N{MINUS SIGN}' in formulas.mathml(tex)) == is_sign


def test_limits_stand_beneath_in_displayed_formulas_only():
    assert "<munder>" in formulas.mathml(r"\lim_{n\to\infty} x", display=True)
    assert "<munder>" not in formulas.mathml(r"\lim_{n\to\infty} x")


def test_all_displayed_formulas_of_the_documents_are_understood():
    seen = 0
    for path in directory().rglob("*.md"):
        for tex in re.findall(r"\$\$(.+?)\$\$", path.read_text(encoding="utf-8"), flags=re.DOTALL):
            text = formulas.mathml(tex, display=True)
            assert "\\" not in text, tex
            assert "mathspace" not in text, tex
            seen += 1
    assert seen > 10
