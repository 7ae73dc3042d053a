"""Results as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars


class Tabular(ABC):
    """A result that is a table in a notebook, and a few of its rows in a terminal."""

    @abstractmethod
    def to_frame(self) -> polars.DataFrame: ...

    def _repr_html_(self) -> str:
        return self.to_frame()._repr_html_()

    def __repr__(self) -> str:
        return f"{type(self).__name__}\n{self.to_frame()}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sampled(Tabular):
    """A result over all inputs, where ``samples`` is None, or over so many; ``level`` is that of its intervals.

    ``about`` says which networks these are.
    """

    samples: int | None
    level: float
    about: dict[str, np.ndarray] = field(repr=False)

    @property
    def exact(self) -> bool:
        return self.samples is None


def table(about: Mapping[str, np.ndarray], columns: Mapping[str, Any], lead: tuple[int, ...]) -> polars.DataFrame:
    """A row for each network; where columns have one axis more, for each of its entries.

    A column that is one row long holds for every network.
    """
    import polars

    shape = max((np.shape(values) for values in columns.values()), key=len)
    extra = shape[len(lead):]
    made = {name: np.broadcast_to(np.expand_dims(values, tuple(range(len(lead), len(lead) + len(extra)))), shape)
            for name, values in about.items()}
    for name, values in columns.items():
        array = np.asarray(values)
        if array.shape == lead and extra:
            array = np.expand_dims(array, tuple(range(len(lead), len(shape))))
        made[name] = np.broadcast_to(array, shape)
    return polars.DataFrame({name: values.reshape(-1).tolist() for name, values in made.items()})
