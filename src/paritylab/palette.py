"""The colours of curves, on paper and on the site: one source for both.

The first four are Okabe and Ito's blue, vermilion, green and black; the others keep 3:1 of contrast with the page and
are farther from all others, to an eye without red, green or blue cones, than the rest of theirs
(``tests/test_palette.py``). No figure tells things apart by colour alone: lines have dashes and points have shapes.
"""

from __future__ import annotations

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#af1068", "#846cfe", "#5b4a00")
"""On white paper."""
DARK = ("#88c4ff", "#ff6a42", "#00b2a1", "#e6e4df", "#cd61ff", "#62648c", "#edc445")
"""The same curves on the dark pages of the site."""
GREY = "#666666"
"""What stands beside the curves: laws, references, remarks."""


def stylesheet() -> str:
    """The colours as variables of the site: ``--series-1`` and so on, in light and in dark.

    >>> stylesheet().splitlines()[0]
    ':root { --series-1: #0072b2; --series-2: #d55e00; --series-3: #009e73; --series-4: #000000; ... }'
    """
    light, dark = (" ".join(f"--series-{place}: {colour};" for place, colour in enumerate(colours, 1))
                   for colours in (COLOURS, DARK))
    return (f":root {{ {light} }}\n"
            f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
            f':root[data-theme="dark"] {{ {dark} }}\n')
