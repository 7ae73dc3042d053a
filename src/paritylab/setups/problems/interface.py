"""What engines need of a Problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol

import numpy as np


class Problem(Protocol):
    """What is learned: a law of inputs, a target, label noise, and a stream or a finite sample.

    Inputs are drawn as the problem likes (packed bits, if uniform); ``signs`` and ``labels`` make of them what the
    network sees and what it is to say.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def n(self) -> int:
        """The number of inputs."""
        ...

    @property
    def k(self) -> int | None:
        """The size of the support."""
        ...

    @property
    def support(self) -> Sequence[int] | None: ...
    @property
    def noise(self) -> float:
        """The probability that a training label is flipped."""
        ...

    @property
    def sample(self) -> int | None:
        """The size of a finite training sample; None for a fresh batch each step."""
        ...

    @property
    def examples(self) -> int:
        """The same as a number: 0 for a fresh batch each step."""
        ...

    @property
    def replacement(self) -> bool: ...
    @property
    def inputs(self) -> Any: ...
    @property
    def degree(self) -> int: ...
    @property
    def words(self) -> int:
        """Words that hold the inputs of one example, packed."""
        ...

    @property
    def mask(self) -> np.ndarray:
        """The support as bits of such words."""
        ...

    @property
    def flip(self) -> int:
        """Labels are flipped where a 32-bit word falls below this."""
        ...

    def draw(self, key: Any, count: int) -> Any: ...
    def draw_block(self, key: Any, block: Any, size: int) -> Any: ...
    def signs(self, drawn: Any, mask: Any = None) -> Any: ...
    def labels(self, drawn: Any, mask: Any) -> Any: ...
