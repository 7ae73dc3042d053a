"""A claim as one object: what is stated, how large a trial of it is, what it asks for, how it is judged and drawn.

    @claim("me2025.fig1", where="Figure 1", kind="empirical", title="Wider is sooner",
           statement="Wider networks are solved in fewer steps.", published="a factor of two from width 10 to 100")
    class Fig1(Trial):
        widths = size(quick=[10, 100], full=[10, 30, 100, 300])
        runs = size(quick=100, full=1000)

        sooner = at_least("median t_c at the smallest width / at the largest", 1.5)

        def work(self, lab):                       # asks the Lab for runs, curves, races, computations
            return lab.sweep([...], self.runs)

        def judge(self, got):                      # needs no Lab
            return Findings([self.sooner(...)], rows)

        def draw(self, got): ...

Whatever people read about its setup and its rule is made from this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from paritylab.claims.rules import SIZES, Rule, Size
from paritylab.claims.verdicts import Check
from paritylab.errors import InvalidInput, require, unknown
from paritylab.later import np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paritylab.claims.lab import Lab

T = TypeVar("T")
TrialClass = TypeVar("TrialClass", bound="type[Trial]")
KINDS = ("empirical", "theory", "exact")
_SAME: Any = object()


class size(Generic[T]):
    """A parameter of a trial by its size; ``standard`` is as ``full`` unless said, and ``size(10)`` is 10 at all sizes.

    ``label`` is its name in evidence and on pages, where the attribute's own will not do.
    """

    @overload
    def __init__(self, same: T, /, *, label: str | None = None) -> None: ...
    @overload
    def __init__(self, /, *, quick: T, full: T, standard: T = ..., label: str | None = None) -> None: ...
    def __init__(
        self, same: T = _SAME, /, *, quick: T = _SAME, full: T = _SAME, standard: T = _SAME, label: str | None = None
    ) -> None:
        if same is not _SAME:
            quick = full = same
        require(quick is not _SAME and full is not _SAME, "size() needs one value for all sizes, or quick= and full=")
        values: dict[Size, T] = {"quick": quick, "standard": full if standard is _SAME else standard, "full": full}
        self.values, self.label = values, label

    def __set_name__(self, owner: type, name: str) -> None:
        self.label = self.label or name

    @overload
    def __get__(self, trial: None, owner: type) -> size[T]: ...
    @overload
    def __get__(self, trial: Trial, owner: type) -> T: ...
    def __get__(self, trial: Trial | None, owner: type) -> size[T] | T:
        return self if trial is None else self.values[trial.size]


@dataclass(frozen=True)
class Findings:
    """What a trial says: the checks of its rules, and tidy data, one row for each point.

    ``numbers`` are further results worth quoting, ``note`` a sentence on how this trial departs from the paper's.
    """

    checks: Sequence[Check]
    data: Sequence[Mapping[str, Any]]
    numbers: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    note: str = ""


class Trial(ABC):
    """What tries a claim, at one size and seed: ``work``, then ``judge`` and ``draw`` what it returned."""

    claim: str = ""
    """The id of the claim; the decorator sets it, and its kind."""
    kind: str = "empirical"

    def __init__(self, size: Size = "quick", seed: int = 0) -> None:
        if size not in SIZES:
            raise unknown("size", size, SIZES)
        require(0 <= seed < 2**32, f"seed must be in 0..2^32-1, not {seed}")
        self.size: Size = size
        self.seed = seed

    @abstractmethod
    def work(self, lab: Lab) -> Any:
        """Ask for everything that takes long, and return what came of it."""

    @abstractmethod
    def judge(self, got: Any) -> Findings:
        """The checks, data and numbers that follow from it."""

    def draw(self, got: Any) -> Figure | None:
        """A figure of it."""
        return None

    def rng(self, *path: int) -> np.random.Generator:
        """Random numbers of the trial's own, for whatever is not a run."""
        return rng(self.seed, *path)

    @classmethod
    def sizes(cls) -> dict[str, size[Any]]:
        """The declared sizes, by label, those of base classes first."""
        found: dict[str, size[Any]] = _declared(cls, size)
        return {str(value.label): value for value in found.values()}

    @classmethod
    def rules(cls) -> list[Rule]:
        """The declared rules, in order."""
        return list(_declared(cls, Rule).values())

    @property
    def parameters(self) -> dict[str, Any]:
        """The sizes of this trial, by label."""
        return {label: each.values[self.size] for label, each in self.sizes().items()}

    @property
    def reduced(self) -> bool:
        """Whether any size is not that of the published setup."""
        return any(each.values[self.size] != each.values["full"] for each in self.sizes().values())


def _declared(cls: type, kind: type[T]) -> dict[str, T]:
    found: dict[str, T] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            found.pop(name, None)
            if isinstance(value, kind):
                found[name] = value
    return found


def rng(seed: int, *path: int) -> np.random.Generator:
    """Random numbers that belong to a seed and a path."""
    return np.random.default_rng([seed, *path])


def claim(
    id: str, *, where: str, kind: str, title: str, statement: str, published: str
) -> Callable[[TrialClass], TrialClass]:
    """Declare the claim that a Trial tries. Lists read these arguments without running the code: write them out.

    Args:
        id: ``paper.name``, unique.
        where: in the paper: figure, theorem or section.
        kind: ``empirical``, ``theory`` or ``exact``.
        title: a few words.
        statement: what is claimed, in your own words.
        published: the printed numbers, or what is shown.
    """

    def declare(trial: TrialClass) -> TrialClass:
        if kind not in KINDS:
            raise unknown("kind of claim", kind, KINDS)
        for name in ("work", "judge"):
            if getattr(trial, name) is getattr(Trial, name):
                raise InvalidInput(f"{id}: {trial.__name__} has no {name}()")
        require(bool(trial.rules()), f"{id}: {trial.__name__} declares no rule")
        trial.claim, trial.kind = id, kind
        return trial

    return declare
