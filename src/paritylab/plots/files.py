"""Figures as files, with what was drawn beside them. The same figure gives the same bytes."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import io
import json
import logging
import os
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager

from paritylab.plots.style import styled
from paritylab.storage.files import write_atomically

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("png", "svg", "pdf")
MOST_SHAPES = 500

_drawn: WeakKeyDictionary[Axes, pl.DataFrame] = WeakKeyDictionary()


def note(axes: Axes, table: pl.DataFrame) -> None:
    """Remember what was drawn in these axes."""
    import polars as pl

    _drawn[axes] = table if axes not in _drawn else pl.concat([_drawn[axes], table], how="diagonal_relaxed")


def data(figure: Figure) -> pl.DataFrame | None:
    """The numbers that a figure of this package shows, in rows; None of others.

    >>> data(Figure()) is None
    True
    """
    import polars as pl

    tables = [_drawn[axes] for axes in figure.axes if axes in _drawn]
    return pl.concat(tables, how="diagonal_relaxed") if tables else None


@styled
def save(figure: Figure, path: str | os.PathLike[str], made: Mapping[str, Any] | None = None) -> list[Path]:
    """Write ``path``.png (300 dpi), ``path``.svg and ``path``.pdf, or only ``path`` if it ends so.

    Beside them are what the figure shows, as ``path``.csv, and what it was made by, as ``path``.json, where these are
    known. Each file is whole or not there. Text stays text: a PDF has its fonts, and an SVG those of their signs that
    it needs.
    """
    _flatten(figure)
    stem, formats = Path(path), FORMATS
    if stem.suffix[1:].lower() in FORMATS:
        stem, formats = stem.with_suffix(""), (stem.suffix[1:].lower(),)
    stem.parent.mkdir(parents=True, exist_ok=True)
    contents = {suffix: drawn_as(figure, suffix) for suffix in formats}
    table = data(figure)
    if table is not None:
        contents["csv"] = table.write_csv().encode()
    if made is not None:
        contents["json"] = (json.dumps(made, indent=1, allow_nan=False) + "\n").encode()
    written: list[Path] = []
    for suffix, content in contents.items():
        written.append(stem.with_name(f"{stem.name}.{suffix}"))
        write_atomically(written[-1], content)
    return written


def drawn_as(figure: Figure, suffix: str) -> bytes:
    """A file of this format; without a date, so that the same figure gives the same bytes."""
    buffer = io.BytesIO()
    undated = {} if suffix == "png" else {"Date" if suffix == "svg" else "CreationDate": None}
    figure.savefig(buffer, format=suffix, dpi=300, metadata=undated)
    return with_fonts(lighter(buffer.getvalue().decode())).encode() if suffix == "svg" else buffer.getvalue()


def _flatten(figure: Figure) -> None:
    """Draw clouds of many points as a picture: as shapes they would take megabytes in the SVG."""
    for axes in figure.axes:
        for line in axes.lines:
            many = line.get_linestyle() == "None" and len(np.atleast_1d(line.get_xdata())) > MOST_SHAPES
            line.set_rasterized(bool(line.get_rasterized()) or many)
        for cloud in axes.collections:
            many = len(np.asarray(cloud.get_offsets())) > MOST_SHAPES
            cloud.set_rasterized(bool(cloud.get_rasterized()) or many)


_TEXT = re.compile(r'<(?:text|tspan)[^>]*? style="(?P<style>[^"]*)"[^>]*>(?P<text>[^<]+)<')
_STYLE = '<style type="text/css">'


logging.getLogger("fontTools.ttLib.tables._h_e_a_d").addFilter(lambda _: False)  # Computer Modern has dates of 1904


def lighter(svg: str) -> str:
    """An SVG whose lines have places to a hundredth of a point: half the size.

    >>> lighter('<path d="M 49.984424 132.108164"/>')
    '<path d="M 49.98 132.10"/>'
    """
    return re.sub(r' d="[^"]*"', lambda found: re.sub(r"(?<=\.\d\d)\d+", "", found[0]), svg)


def with_fonts(svg: str) -> str:
    """An SVG with the glyphs it uses: it looks the same where its fonts are not installed, and its text is text."""
    needed: dict[str, set[str]] = {}
    for found in _TEXT.finditer(svg):
        families = re.findall(r"'([^']*)'", found["style"])
        for sign in unescape(found["text"]):
            family = next((each for each in families if ord(sign) in _signs(each)), None)
            if family is not None:
                needed.setdefault(family, set()).add(sign)
    faces = "".join(f"@font-face{{font-family:'{family}';src:url(data:font/woff;base64,{_part(family, signs)})}}"
                    for family, signs in sorted(needed.items()))
    return svg.replace(_STYLE, _STYLE + faces, 1)


def _file(family: str) -> str:
    return fontManager.findfont(FontProperties(family=[family]), fallback_to_default=False)


def _signs(family: str) -> frozenset[int]:
    """What a font has."""
    if family not in _known:
        from fontTools.ttLib import TTFont

        try:
            with TTFont(_file(family)) as font:
                _known[family] = frozenset(font.getBestCmap() or ())
        except ValueError:  # a family that is not there
            _known[family] = frozenset()
    return _known[family]


_known: dict[str, frozenset[int]] = {}


def _part(family: str, signs: set[str]) -> str:
    """These signs of a font, as a font."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    buffer = io.BytesIO()
    with TTFont(_file(family), recalcTimestamp=False) as font:
        if "FFTM" in font:  # what FontForge leaves of itself
            del font["FFTM"]
        subsetter = Subsetter(Options(hinting=False, layout_features=[], name_IDs=[1, 2], notdef_outline=True))
        subsetter.populate(unicodes=sorted(map(ord, signs)))
        subsetter.subset(font)
        font.flavor = "woff"
        font.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode()
