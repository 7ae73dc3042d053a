"""The page of the optimisers: every cell of the comparison, sortable on three axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paritylab_beyond.beyond.contest import design, table

if TYPE_CHECKING:
    from paritylab.site.build import Site
    from paritylab.site.content import Card

PAGES = {"optimisers.html": ("Optimisers", "Which of twelve learns parities fastest, each at its best rate.")}
SENT = ("optimiser", "network", "n", "k", "rate", "edge", "runs", "solved_fraction", "limit", "engine",
        *table.AXES, *(f"{axis}_interval" for axis in table.AXES))


def add(site: Site, cards: Mapping[str, Card]) -> None:
    """The table of the shipped cells."""
    shipped = table.shipped()
    titles = {name: entrant.title for name, entrant in design.ENTRANTS.items()}
    site.data("optimisers", {
        "titles": titles, "networks": {name: kind.title for name, kind in design.NETWORKS.items()},
        "rows": [{name: each[name] for name in SENT} for each in shipped["rows"]],
        "standings": {axis: table.standings(shipped["rows"], axis) for axis in table.AXES},
    })
    problems = list(table.by_problem(shipped["rows"]))
    site.page("optimisers.html", "optimisers", "Optimisers", problems=problems, networks=design.NETWORKS,
              runs=shipped["runs"], tuning=shipped["tuning"], cells=len(shipped["rows"]), entrants=design.ENTRANTS,
              whole=len(design.cells(design.SIZES["full"])))
