"""The published data that a paper of this pack keeps beside its claims."""

from __future__ import annotations

from importlib import resources

import polars as pl


def table(paper: str, name: str) -> pl.DataFrame:
    """A table of a paper's data.

    >>> table("michaud2025", "counts")["converged"].to_list()
    [27, 0, 19, 16]
    """
    path = resources.files(f"paritylab_emergence.{paper}").joinpath("data", f"{name}.csv")
    return pl.read_csv(path.read_bytes())
