"""Make the font of the site's formulas, ``src/paritylab/site/fonts/math.woff2``: a subset of TeX Gyre Pagella Math.

    python tools/math_font.py texgyrepagella-math.otf

The original (version 1.632) is in Debian's package fonts-texgyre-math and at
http://www.gust.org.pl/projects/e-foundry/tg-math. With fonttools 4.68.0 and brotli 1.2.1 the same bytes come out again.
"""

import hashlib
import sys
from pathlib import Path

ORIGINAL = "1f9e010f60e947d0e925910009b2ea85ad54edc7cefb106f8cdefb9ffd1d5f2f"
"""SHA-256 of the font that is cut down."""
FONT = Path(__file__).parents[1] / "src" / "paritylab" / "site" / "fonts" / "math.woff2"
NAME = "Paritylab Math"
"""The licence asks that a changed font have a name of its own."""
NAMES = {1: NAME, 3: "paritylab: math.woff2", 4: NAME, 6: NAME.replace(" ", ""), 16: NAME,
         10: "A subset of TeX Gyre Pagella Math 1.632, made by paritylab's tools/math_font.py; no glyph is changed.",
         13: "GUST Font License, an instance of the LaTeX Project Public License 1.3c or later",
         14: "http://www.gust.org.pl/fonts/licenses/GUST-FONT-LICENSE.txt"}
SIGNS = (
    (0x20, 0x7E), (0xA0, 0xFF), (0x391, 0x3F5),  # Latin for words in formulas, Greek
    (0x300, 0x30C), (0x20D6, 0x20D7),  # accents
    (0x2010, 0x2063), (0x2102, 0x2138), (0x25A0, 0x25A1),  # dots and primes, letter-like signs, ends of proofs
    (0x2190, 0x21A6), (0x21BC, 0x21D5), (0x27F5, 0x27FA),  # arrows
    (0x2200, 0x22F1), (0x2A7D, 0x2A7E), (0x2AAF, 0x2AB0),  # operators and relations
    (0x2308, 0x230B), (0x23DE, 0x23DF), (0x27E6, 0x27EB),  # fences
    (0x1D400, 0x1D467), (0x1D49C, 0x1D4B5), (0x1D504, 0x1D56B),  # bold, italic, script, Fraktur, double-struck
    (0x1D6A4, 0x1D71B), (0x1D7CE, 0x1D7E1),  # bold and italic Greek; bold and double-struck digits
)
"""First and last of the code points that are kept where the font has them."""


def main() -> None:
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    if len(sys.argv) != 2:
        sys.exit(__doc__)
    original = Path(sys.argv[1])
    if hashlib.sha256(original.read_bytes()).hexdigest() != ORIGINAL:
        sys.exit(f"{original} is not TeX Gyre Pagella Math 1.632")
    font = TTFont(original, recalcTimestamp=False)
    options = Options(layout_features=[], name_IDs=["*"], name_languages=["*"], drop_tables=["FFTM"], hinting=False)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in SIGNS for code in range(first, last + 1)])
    subsetter.subset(font)  # with the sizes and parts of stretched signs that the table MATH names
    for number, text in NAMES.items():
        font["name"].setName(text, number, 3, 1, 0x409)
    font["CFF "].cff.fontNames = [NAMES[6]]
    top = font["CFF "].cff.topDictIndex[0]
    top.FamilyName = top.FullName = NAME
    font.flavor = "woff2"
    font.save(FONT)
    print(f"{FONT}: {font['maxp'].numGlyphs} glyphs, {FONT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
