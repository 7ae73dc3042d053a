"""A Result: the Records of some runs of one Setup, what they say, and the networks that they trained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from paritylab import statistics
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records
from paritylab.trained import TrainedNetwork, TrainedNetworks, regenerating
from paritylab.trained.kept import KeptNetworks

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from polars import DataFrame


@dataclass(frozen=True, repr=False)
class Result:
    """The Records of some runs of one Setup, and what they say."""

    setup: Setup
    engine: str
    seed: int
    records: Records
    seconds: float
    """Wall time of the sweep that completed these records; what came from the store cost nothing."""
    reused: int = 0
    """How many of the records came from the store."""
    failure: str | None = None
    """Why there are not all the records asked for, where a user's function failed or memory did not suffice."""
    kept: KeptNetworks | None = field(default=None, compare=False)
    """Where networks may be that were kept beside the records."""
    earlier: tuple[str, ...] = ()
    """Other labels that some of the records have: of earlier arithmetic, where ``any_arithmetic`` asked for it."""

    @property
    def summary(self) -> statistics.Summary:
        return statistics.summary(self.records)

    @property
    def model_steps(self) -> int:
        """Updates that went into these records."""
        return int(self.records.steps.sum())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "setup_id": self.setup.id,
            "engine": self.engine,
            **({"earlier": list(self.earlier)} if self.earlier else {}),
            "seed": self.seed,
            "lr": self.setup.learner.optimiser.lr,
            **self.summary.to_dict(),
            "seconds": round(self.seconds, 3),
            "model_steps": self.model_steps,
        }

    def __str__(self) -> str:
        return str(self.summary)

    def __repr__(self) -> str:
        about = f"{self.setup.id}, {self.engine}, seed {self.seed}"
        return f"<{type(self).__name__} {about}: {str(self.summary).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        """For notebooks: what was measured, what came of it, and the survival curve."""
        from paritylab.running.shown import html

        return html(self)

    def to_frame(self) -> DataFrame:
        """The Records as a Polars frame, one row for each run; ``t_c`` is null where a run was not solved."""
        from paritylab.storage.gathered import to_frame

        return to_frame(self.records)

    def network(self, run: int, at: str | int = "solved", **options: Any) -> TrainedNetwork:
        """The network of one run; what ``at`` and the options are, :meth:`networks` says."""
        return self.networks([run], at, **options)[0]

    def networks(
        self,
        runs: Iterable[int] | None = None,
        at: regenerating.At = "solved",
        *,
        omit_missing: bool = False,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> TrainedNetworks:
        """The trained networks of these runs: as they were kept, or trained again by the engine that measured them.

        They are the networks that were measured, to the last bit where the engine promises it (``exact`` says so). A
        run that does not end as its record says, with its t_c and status, is refused.

        Args:
            runs: the numbers of the runs, such as ``range(100)``; all of them unless said.
            at: ``solved``, at t_c, the first check that found the run solved; ``before``, at half of t_c, and
                ``after``, at twice t_c; ``start``, before training; ``end``, where the record ends, solved or not; or
                a number of steps, which may be beyond the end. Of several, as in ``["before", "solved", "after"]``,
                all networks at the first come first.
            omit_missing: leave out the runs that have no such network (unsolved or diverged ones), not refuse.
            threads: cores for the native engine; all of them unless said.
            progress: a bar on standard error; by default only on a terminal.
        """
        return regenerating.networks(
            self.measured, runs, at, omit_missing=omit_missing, threads=threads, progress=progress)

    @property
    def measured(self) -> regenerating.Measured:
        """The runs as they were measured, for those that train them again."""
        return regenerating.Measured(self.setup, self.seed, self.engine, self.records, self.kept)

    def plot(self) -> Figure:
        """The survival curve: the fraction of runs not solved yet, against steps."""
        from paritylab import plots

        problem = self.setup.problem
        return plots.survival_plot({f"n={problem.n}, k={problem.k}": self.records})
