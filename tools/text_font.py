"""Make the font of figures, ``src/paritylab/plots/fonts/roman.ttf``: Computer Modern Roman that is told by Unicode.

    python tools/text_font.py

matplotlib ships Computer Modern in TeX's own encoding: cmr10 has an inverted question mark where a text says ``>``, and
a dot where it says ``_``. Here every glyph is where Unicode has it, and the signs that TeX takes from cmmi10 and cmsy10
are in the same font. With matplotlib 3.11.2 and fonttools 4.68.0 the same bytes come out again.
"""

# ruff: noqa: RUF001

from pathlib import Path

FONT = Path(__file__).parents[1] / "src" / "paritylab" / "plots" / "fonts" / "roman.ttf"
NAME = "Paritylab Roman"
"""Not cmr10 any more."""
NAMES = {1: NAME, 2: "Regular", 3: "paritylab: roman.ttf", 4: NAME, 6: NAME.replace(" ", ""),
         10: "Computer Modern of the BaKoMa Fonts Collection, encoded anew by paritylab's tools/text_font.py; no glyph"
             " is changed. The originals: http://www.ctan.org/tex-archive/fonts/cm/ps-type1/bakoma",
         13: "BaKoMa Fonts Licence, see LICENSE.txt"}
WRONG = '"<>\\_{|}~^`'
"""Signs that have another's glyph in cmr10."""
ROMAN = {"–": "endash", "—": "emdash", "’": "quoteright", "‘": "quoteleft", "“": "quotedblleft", "”": "quotedblright",
         '"': "quotedblright", "`": "quoteleft", "~": "tilde", "^": "circumflex", "ß": "germandbls", "æ": "ae",
         "œ": "oe", "ø": "oslash", "Æ": "AE", "Œ": "OE", "Ø": "Oslash", "ı": "dotlessi", "¡": "exclamdown",
         "¿": "questiondown",
         **dict(zip("ΓΔΘΛΞΠΣΥΦΨΩ", ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi",
                                    "Omega"), strict=True))}
ITALIC = {"<": "less", ">": "greater", "∂": "partialdiff",
          **dict(zip("αβγδεζηθικλμνξπρστυφχψω", ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta",
                     "iota", "kappa", "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi",
                     "psi", "omega"), strict=True))}
SIGNS = {"−": "minus", "×": "multiply", "±": "plusminus", "·": "periodcentered", "≤": "lessequal", "≥": "greaterequal",
         "≈": "approxequal", "≡": "equivalence", "∝": "proportional", "∞": "infinity", "→": "arrowright",
         "←": "arrowleft", "↑": "arrowup", "↓": "arrowdown", "∈": "element", "|": "bar", "{": "braceleft",
         "}": "braceright",
         "\\": "backslash", "∇": "nabla", "†": "dagger", "‡": "daggerdbl", "§": "section", "•": "bullet", "′": "prime"}


def main() -> None:
    import matplotlib
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from fontTools.ttLib import TTFont

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    roman, italic, signs = (TTFont(folder / f"{name}.ttf", recalcTimestamp=False)
                            for name in ("cmr10", "cmmi10", "cmsy10"))
    before = roman.getBestCmap()
    codes = {code: name for code, name in before.items() if code < 0x7F and chr(code) not in WRONG}
    codes |= {ord(sign): name for sign, name in ROMAN.items()} | {0xA0: "space"}
    order, advance = list(roman.getGlyphOrder()), {}
    for font, chosen in ((italic, ITALIC), (signs, SIGNS)):
        assert font["head"].unitsPerEm == roman["head"].unitsPerEm
        for sign, name in chosen.items():
            glyph = f"uni{ord(sign):04X}"
            drawn = TTGlyphPen(None)
            font.getGlyphSet()[name].draw(drawn)
            roman["glyf"][glyph] = drawn.glyph()
            advance[glyph] = font["hmtx"][name]
            codes[ord(sign)] = glyph
            order.append(glyph)
    em = roman["head"].unitsPerEm
    drawn = TTGlyphPen(None)  # TeX's underscore is a rule of 0.4 pt
    for point, place in zip((drawn.moveTo, drawn.lineTo, drawn.lineTo, drawn.lineTo), ((0.03, -0.1), (0.03, -0.06),
                            (0.47, -0.06), (0.47, -0.1)), strict=True):
        point((round(place[0] * em), round(place[1] * em)))
    drawn.closePath()
    roman["glyf"]["underscore"] = drawn.glyph()
    advance["underscore"], codes[ord("_")] = (round(em / 2), round(0.03 * em)), "underscore"
    roman.setGlyphOrder(list(dict.fromkeys([*order, "underscore"])))
    for glyph, metrics in advance.items():
        roman["hmtx"][glyph] = metrics
    for table in roman["cmap"].tables:
        table.cmap = {code: name for code, name in codes.items() if table.isUnicode() or code < 0x7F}
    for table in ("fpgm", "prep", "cvt ", "hdmx", "VDMX", "kern"):  # hints of one font are not those of another
        if table in roman:
            del roman[table]
    for name in roman.getGlyphOrder():
        roman["glyf"][name].removeHinting()
    for number, text in NAMES.items():
        roman["name"].setName(text, number, 3, 1, 0x409)
        roman["name"].setName(text, number, 1, 0, 0)
    FONT.parent.mkdir(exist_ok=True)
    roman.save(FONT)
    print(f"{FONT}: {roman['maxp'].numGlyphs} glyphs, {FONT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
