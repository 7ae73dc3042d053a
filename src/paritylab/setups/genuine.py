"""Losses, activations, schedules and inits: built in, and known by their spec, or the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from paritylab.errors import InvalidInput
from paritylab.functions.named import MARK

T = TypeVar("T", bound="Specified")
PLAIN = (bool, int, float, str)


class Specified:
    """Something with a spec; it is the user's own unless paritylab made it, just as it is."""

    spec: str

    @property
    def is_own(self) -> bool:
        made = vars(self).get("_made")
        return made is None or any(not _same(vars(self)[name], value) for name, value in made.items())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or self.spec != other.spec:
            return False
        return not self.spec.endswith(MARK) or vars(self) == vars(other)  # what it computes is not known yet

    def __hash__(self) -> int:
        return hash(self.spec)

    def __reduce__(self) -> Any:
        return super().__reduce__() if self.is_own else (_again, (type(self), self.spec))


def builtin(made: T) -> T:
    """Mark what paritylab made. ``dataclasses.replace`` makes an object without the mark."""
    object.__setattr__(made, "_made", {name: value for name, value in vars(made).items() if name != "_made"})
    return made


def accepted(kind: str, given: T, own: Callable[[], T]) -> T:
    """What is built in as it is; the user's own anew, by what it computes; nothing under a built-in's name.

    >>> from paritylab.setups.losses import Loss, loss
    >>> loss(Loss("hinge", lambda f, y: f))
    Traceback (most recent call last):
    ...
    paritylab.errors.InvalidInput: a loss named 'hinge' must be the built-in one; pass your function itself
    """
    if not given.is_own:
        return given
    if MARK not in given.spec:
        raise InvalidInput(f"a{'n' * (kind[0] in 'ai')} {kind} named {given.spec!r} must be the built-in one;"
                           " pass your function itself")
    if getattr(given, "native", None) is not None:
        raise InvalidInput(f"only a built-in {kind} has a native form: leave out native={given.native!r}")  # type: ignore[attr-defined]
    return own()


def _again(kind: type, spec: str) -> Any:
    """What is built in, in another process."""
    import paritylab.setups.inits
    import paritylab.setups.losses
    import paritylab.setups.networks.activations
    import paritylab.setups.schedules

    setups = paritylab.setups
    makers = {"Init": setups.inits.init, "Loss": setups.losses.loss, "Schedule": setups.schedules.schedule,
              "Activation": setups.networks.activations.activation}
    return makers[kind.__name__](spec)


def _same(now: Any, then: Any) -> bool:
    return now is then or (type(now) is type(then) and isinstance(now, PLAIN) and now == then)
