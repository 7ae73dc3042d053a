"""The Results of a sweep together, as a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from paritylab.setups import parameters

if TYPE_CHECKING:
    import polars as pl

    from paritylab.running.sweeps import Result
    from paritylab.storage.gathered import Gathered


class Results(list["Result"]):
    """A list of Results, in the order in which Setups were given."""

    def to_frame(self, *, records: bool = False) -> pl.DataFrame:
        """One row for each Result: the Setup's id and parameters, engine, seed, and the summary of its runs.

        A percentile of ``inf`` is not reached; its interval is from ``median_low`` to ``median_high``. With ``records``
        there is one row for each run instead; a parameter that is called as a column of Records (``loss``) has its part
        in front (``learner_loss``).
        """
        import polars as pl

        from paritylab.statistics.tables import summaries
        from paritylab.storage.gathered import KEY, RECORD, Gathered

        found = self.samples()
        about = found.series.drop(*KEY, "count")
        if records:
            about = about.rename({name: f"learner_{name}" for name in about.columns if name in RECORD})
            whose = Gathered(about.hstack(found.series.select(*KEY, "count")), found.records)
            return whose.rows("setup_id", *about.columns, "engine", "seed")
        full = found.series["count"].to_numpy() > 0
        table = summaries(Gathered(found.series.select(*KEY, "count").filter(full), found.records))
        return about.filter(full).select(table["setup_id"], pl.all()).hstack(table.drop("setup_id"))

    def _repr_html_(self) -> str:
        """For notebooks: the parameters in which the Setups differ, and what came of each."""
        from paritylab.running.shown import results_html

        return results_html(self)

    def samples(self) -> Gathered:
        """All Records, Result after Result, with the Setup's parameters beside the key of each: what figures take."""
        import polars as pl

        from paritylab.storage.catalogue import column
        from paritylab.storage.gathered import KEY, Gathered, to_frame
        from paritylab.storage.records import Records

        keys = [(result.setup.id, result.engine, result.seed, len(result.records)) for result in self]
        series = pl.DataFrame(keys, schema=KEY | {"count": pl.Int64()}, orient="row")
        rows = [parameters.flattened(json.loads(result.setup.to_json())) for result in self]
        names = parameters.ordered(dict.fromkeys(name for row in rows for name in row))
        about = pl.DataFrame([column([row.get(name) for row in rows], name) for name in names])
        every = to_frame(Records.concatenate([result.records for result in self]))
        return Gathered(series.select("setup_id").hstack(about).hstack(series.drop("setup_id")), every)
