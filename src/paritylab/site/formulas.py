"""Formulas: TeX becomes MathML when the site is built; browsers draw it, in the font that the site brings along."""

from __future__ import annotations

import base64
import contextlib
import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

FONTS = Path(__file__).parent / "fonts"
FAMILY = "Paritylab Math"

_OPEN, _CLOSE, _BARS = frozenset("([{⟨⌈⌊"), frozenset(")]}⟩⌉⌋"), frozenset("|‖")
_SIGNED = frozenset("\N{MINUS SIGN}+±∓")
_LARGE = frozenset("∑∏∫∬∭∮")
_LETTERS = frozenset("∞…∂∇∅")
_SIGNS = {r"\{": "{", r"\}": "}", r"\|": "‖", "~": "\N{TILDE OPERATOR}", "*": "\N{ASTERISK OPERATOR}"}
_JOINED = {":=": "≔", "\N{PRIME}\N{PRIME}": "″", "″\N{PRIME}": "‴", "‴\N{PRIME}": "⁗"}
_LIMITS = frozenset({"lim", "inf", "sup", "min", "max"})
_SCRIPTS = frozenset({"msup", "msub", "msubsup", "munder", "mover", "munderover"})
_ROWS = frozenset({"math", "mrow", "msqrt", "mstyle"})


def stylesheet() -> bytes:
    """The font inside a style sheet: browsers differ in what fonts a page opened from disk may load."""
    data = base64.b64encode((FONTS / "math.woff2").read_bytes()).decode()
    return (
        "/* A subset of TeX Gyre Pagella Math, under the GUST Font License: see math-license.txt. */\n"
        f'@font-face {{ font-family: "{FAMILY}"; src: url("data:font/woff2;base64,{data}") format("woff2"); }}\n'
        f'math {{ font-family: "{FAMILY}", math; }}\n'
    ).encode()


def licence() -> bytes:
    """The font's."""
    return (FONTS / "LICENSE.txt").read_bytes()


@functools.cache
def mathml(tex: str, display: bool = False) -> str:
    """A formula as MathML.

    >>> mathml("|x|^2")
    '<math display="inline"><mrow><msup><mrow><mo stretchy="false" form="prefix">|</mo><mrow><mi>x</mi></mrow><mo \
stretchy="false" form="postfix">|</mo></mrow><mn>2</mn></msup></mrow></math>'
    """
    from latex2mathml.converter import convert

    # TeX reads f''^2 as one superscript, the converter only if it is written as one.
    one = re.sub(r"('+)\^(\{[^}]*\}|.)", lambda found: "^{" + r"\prime" * len(found[1]) + f" {found[2]}}}", tex.strip())
    root = ElementTree.fromstring(convert(one, xmlns="", display="block" if display else "inline"))
    _tidy(root, display)
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(node: Element, display: bool) -> None:
    """Mend what would be seen: the converter takes some signs for others and writes everything into flat rows, in which
    browsers cannot tell a fence from a relation or a sign from a difference."""
    for child in node:
        _tidy(child, display)
    if node.tag in ("mi", "mo", "mn"):
        _token(node)
    elif node.get("width") == "negativethinmathspace":  # a name that browsers no longer know
        node.set("width", "-0.167em")
    elif node.tag == "msub" and display and node[0].text in _LIMITS:
        node.tag = "munder"
    elif node.tag in _ROWS:
        node[:] = _spaced(_grouped(_paired(_joined(node))))


def _token(node: Element) -> None:
    """A letter, a name, a number or an operator, whatever the converter took it for."""
    text = node.text = _SIGNS.get(node.text or "", node.text or "")
    if (variant := node.get("mathvariant")) in ("double-struck", "bold") and len(text) == 1:
        node.text = _letter(variant, text)
        del node.attrib["mathvariant"]
    if node.tag != "mn":
        node.tag = "mi" if text.isalpha() or text in _LETTERS else "mo"
    if text in ("/", "."):  # TeX spaces these like letters
        node.attrib |= {"lspace": "0", "rspace": "0"}


def _letter(variant: str, sign: str) -> str:
    """A letter or digit of a mathematical alphabet: browsers no longer heed ``mathvariant``.

    >>> _letter("double-struck", "E"), _letter("double-struck", "Z"), _letter("bold", "1")
    ('𝔼', 'ℤ', '𝟏')
    """
    name = unicodedata.name(sign).replace("LATIN ", "").replace("LETTER ", "")
    for prefix in ("MATHEMATICAL ", ""):
        with contextlib.suppress(KeyError):
            return unicodedata.lookup(f"{prefix}{variant.upper()} {name}")
    return sign


def _operator(node: Element) -> Element | None:
    """The operator that a node is, perhaps with scripts."""
    while node.tag in _SCRIPTS:
        node = node[0]
    return node if node.tag == "mo" else None


def _is_function(node: Element) -> bool:
    """Such as ``ln`` or ``lim`` with what is under it."""
    while node.tag in _SCRIPTS:
        node = node[0]
    return node.tag == "mi" and len(node.text or "") > 1


def _joined(row: Iterable[Element]) -> list[Element]:
    """Upright letters one after the other are a word, primes one after the other one sign."""
    done: list[Element] = []
    for node in row:
        last = done[-1] if done else Element("none")
        both = f"{last.text}{node.text}"
        if last.tag == node.tag == "mi" and last.get("mathvariant") == node.get("mathvariant") == "normal":
            last.text = both
        elif last.tag == node.tag == "mo" and both in _JOINED:
            last.text = _JOINED[both]
        else:
            done.append(node)
    return done


def _paired(row: list[Element]) -> list[Element]:
    """Bars open and close by turns."""
    opened: dict[str | None, Element] = {}
    for node in row:
        bar = _operator(node)
        if bar is None or bar.text not in _BARS:
            continue
        if bar.text in opened:
            for each, form in ((opened.pop(bar.text), "prefix"), (bar, "postfix")):
                each.set("form", form)
                each.attrib.setdefault("stretchy", "false" if "minsize" not in each.attrib else "true")
        elif bar is node:
            opened[bar.text] = bar
    return row


def _grouped(row: list[Element]) -> list[Element]:
    """What stands between fences is a row of its own; scripts of a closing fence are those of the whole."""
    rows: list[list[Element]] = [[]]
    for node in row:
        sign = _operator(node)
        if sign is None:
            rows[-1].append(node)
        elif sign is node and (sign.text in _OPEN or sign.get("form") == "prefix"):
            rows.append([node])
        elif len(rows) > 1 and (sign.text in _CLOSE or sign.get("form") == "postfix"):
            opening, *inside = rows.pop()
            group = _group(opening, inside, sign)
            rows[-1].append(group if sign is node else node)
            for script in node.iter():
                if len(script) and script[0] is sign:
                    script[0] = group
        else:
            rows[-1].append(node)
    return [node for row in rows for node in row]


def _group(opening: Element, inside: list[Element], closing: Element) -> Element:
    if [node.get("linethickness") for node in inside] == ["0"]:  # a binomial: its parentheses grow with it
        for fence in (opening, closing):
            fence.attrib.clear()
    group, content = Element("mrow"), Element("mrow")
    content[:] = _spaced(inside)
    group[:] = [opening, content, closing]
    return group


def _spaced(row: Iterable[Element]) -> Iterator[Element]:
    """Names of functions stand off from letters; plus and minus with nothing before them are signs; sums and integrals
    with nothing before them need no space there."""
    last: Element | None = None
    stands_off = False
    for node in row:
        if node.tag == "mspace":
            stands_off = True
            yield node
            continue
        sign, before = _operator(node), _operator(last) if last is not None else None
        if sign is not None and (last is None or (before is not None and before.text not in _CLOSE)):
            if sign.text in _SIGNED:
                sign.set("form", "prefix")
            elif sign.text in _LARGE:
                sign.set("lspace", "0")
        if last is not None and sign is None and before is None and not stands_off and _stand_off(last, node):
            yield Element("mspace", width="0.167em")
        yield node
        last, stands_off = node, False


def _stand_off(left: Element, right: Element) -> bool:
    """Whether one of them is the name of a function, and not one before its parenthesis."""
    if _is_function(right) or not _is_function(left):
        return _is_function(right)
    while right.tag in _SCRIPTS:
        right = right[0]
    return not (right.tag == "mrow" and len(right) and right[0].text in _OPEN)
