"""One palette, on paper and on the site, that colour-blind readers can tell apart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from paritylab import palette, plots
from paritylab.site import build

SITE = Path(build.__file__).parent
GROUNDS = {"light": (palette.COLOURS, "#fdfcfa"), "dark": (palette.DARK, "#16171a")}
SEEN = {  # Machado, Oliveira and Fernandes 2009, severity 1, of linear light
    "all": np.eye(3),
    "no red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue cones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
       [0.0883024619, 0.2817188376, 0.6299787005]]
LAB = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
       [0.0259040371, 0.7827717662, -0.808675766]]
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00")


def light(colour: str) -> np.ndarray:
    """Linear red, green and blue."""
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def nearest(colours: tuple[str, ...], seen: str) -> float:
    """The distance of the two that are most alike, in OKLab, where black and white are 100 apart."""
    places = [100 * np.array(LAB) @ np.cbrt(np.array(LMS) @ np.clip(np.array(SEEN[seen]) @ light(each), 0, 1))
              for each in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(places, 2))


@pytest.mark.parametrize("ground", GROUNDS)
def test_colours_stand_out_and_are_told_apart_by_every_eye(ground):
    """Better than the seven of Okabe and Ito, of which two are 7.6 apart to an eye without green cones."""
    colours, page = GROUNDS[ground]
    assert len(set(colours)) == 7
    for colour in colours:
        one, other = sorted(float(light(each) @ [0.2126, 0.7152, 0.0722]) for each in (colour, page))
        assert (other + 0.05) / (one + 0.05) >= 3, colour
    assert nearest(OKABE_ITO, "no green cones") == pytest.approx(7.6, abs=0.1)
    assert min(nearest(colours, seen) for seen in ("no red cones", "no green cones")) > 10.5
    assert nearest(colours, "no blue cones") > 8
    assert nearest(colours, "all") > 15


def test_the_site_has_the_colours_of_paper_and_no_others():
    sheet = build.Site().files["assets/palette.css"].decode()
    found = re.findall(r"--series-(\d): (#[0-9a-f]{6})", sheet)
    assert [colour for _, colour in found] == [*palette.COLOURS, *palette.DARK, *palette.DARK]
    assert plots.COLOURS is palette.COLOURS
    for path in [*(SITE / "assets").iterdir(), *(SITE / "templates").iterdir()]:
        text = path.read_text(encoding="utf-8")
        assert "--series-1:" not in text, path
        assert all(1 <= int(place) <= 7 for place in re.findall(r"series-(\d+)", text)), path
    assert "assets/palette.css" in (SITE / "templates" / "base.html").read_text(encoding="utf-8")


def test_curves_of_the_site_have_as_many_dashes_as_on_paper():
    (dashes,) = re.findall(r"DASHES = \[([^\]]*)\]", (SITE / "assets" / "charts.js").read_text(encoding="utf-8"))
    assert len(dashes.split(",")) == len(plots.LINES)
