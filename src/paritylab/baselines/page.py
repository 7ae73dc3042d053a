"""The learners as a page of the site."""

from __future__ import annotations

from paritylab.baselines.registry import METHODS, Method
from paritylab.baselines.targets import KINDS

HEAD = """# Learners and what they can find

Made from the registry of `paritylab.baselines`. Where there is a dash, the learner refuses in a line
that names those that can."""

TAIL = """- **support**: solved if the support that it names is the parity's.
- **terms**: solved if the supports that it names are exactly the polynomial's (terms with equal supports count as one)
  and each coefficient is within half of the smallest. `Record.terms` has the coefficients with 95 % intervals. The
  learner knows how many terms there are, their largest degree, and the size of the smallest coefficient; `low-degree`
  also needs uniform inputs.
- **sign**: it predicts, and names nothing. Solved if its predictions have the label's sign on a share `threshold`
  (0.99) of clean inputs. Where a polynomial is 0 no sign is right: one that is 0 too often is refused.
- *Any other Problem* is one whose class has labels of its own; inputs must be -1 and +1, except for `sgd`.

`ParityClassifier`, for data of your own, looks for one parity or its opposite, whatever its method; a `NoParity`
warning says that the labels are not one. `baselines.terms(x, y, degree, count)` and `baselines.heavy(f, n, ...)`
estimate the large coefficients of any function. A learner of your own is given what it says
([how](../how-to/add-a-learner.md))."""


def markdown() -> str:
    """
    >>> [line for line in markdown().splitlines() if line.startswith("| `exhaustive`")]
    ['| `exhaustive` | examples | support | support | - | - |']
    """
    kinds = [words.removeprefix("a ") for words in KINDS.values()]
    rows = [["learner", "is given", *kinds], ["---"] * (2 + len(kinds))]
    rows += [[f"`{name}`", method.unit, *(_finds(method, kind) for kind in KINDS)] for name, method in METHODS.items()]
    about = [f"- `{name}`: {method.about}" for name, method in METHODS.items()]
    return "\n\n".join([HEAD, "\n".join(f"| {' | '.join(row)} |" for row in rows), TAIL, "## What each does",
                        "\n".join(about)]) + "\n"


def _finds(method: Method, kind: str) -> str:
    """What it finds of such a target, in a word."""
    if kind not in method.targets:
        return "-"
    return "sign" if method.predicts else "terms" if kind == "polynomial" else "support"
