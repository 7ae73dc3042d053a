"""Setup = Problem + Learner + Protocol: validated, written as canonical JSON, identified by its hash."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from paritylab import checks, networks, optimisers, problems, specs
from paritylab.errors import InvalidInput, flag, real, require, unknown, whole
from paritylab.inits import Init, InitLike, init
from paritylab.losses import Loss, LossLike, loss
from paritylab.networks.activations import Activation
from paritylab.schedules import Schedule

CONVENTIONS = 1
"""Version of what a Setup means in numbers (streams, checks, updates); part of every Setup's id."""


@dataclass(frozen=True)
class Learner:
    """What learns and how: network, initialisation, loss, optimiser, batch size."""

    network: Any = field(default_factory=lambda: networks.MLP())
    init: InitLike = "torch"
    loss: LossLike = "hinge"
    optimiser: optimisers.Optimiser = field(default_factory=lambda: optimisers.SGD())
    batch: int = 32

    def __post_init__(self) -> None:
        require(hasattr(self.network, "init") and hasattr(self.network, "apply"),
                f"a network needs init and apply; {type(self.network).__name__} has not both")
        require(isinstance(self.optimiser, optimisers.Optimiser),
                f"an optimiser must be one of SGD, Adam, SignSGD, Optax, not {self.optimiser!r}")
        object.__setattr__(self, "batch", whole("batch", self.batch))
        require(self.batch >= 1, f"batch must be at least 1, not {self.batch}")
        require(self.batch < 2**31, f"batch must be below 2^31, not {self.batch}")
        object.__setattr__(self, "init", init(self.init))
        object.__setattr__(self, "loss", loss(self.loss))


@dataclass(frozen=True)
class Protocol:
    """How a run is judged.

    Every ``eval_every`` steps, and at the last one, accuracy is measured on ``eval_size`` clean inputs of the run's
    own: drawn once before training, or anew for each check if ``fresh``. A run is solved at the first check that
    completes ``consecutive`` checks in a row with accuracy of at least ``threshold``. An output of 0 is an error.
    """

    max_steps: int = 100_000
    eval_every: int = 10
    eval_size: int = 8192
    threshold: float = 1.0
    consecutive: int = 1
    fresh: bool = False

    def __post_init__(self) -> None:
        for name in ("max_steps", "eval_every", "eval_size", "consecutive"):
            value = whole(name, getattr(self, name))
            object.__setattr__(self, name, value)
            require(value >= 1, f"{name} must be at least 1, not {value}")
            require(value < 2**31, f"{name} must be below 2^31, not {value}")
        require(self.eval_size <= 2**24, f"eval_size must be at most 2^24, not {self.eval_size}")
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        object.__setattr__(self, "fresh", flag("fresh", self.fresh))
        require(0 < self.threshold <= 1, f"threshold must be in (0, 1], not {self.threshold:g}")

    @property
    def allowed_errors(self) -> int:
        """The most errors a check may show and still count."""
        return int((1 - self.threshold) * self.eval_size + 1e-9)


@dataclass(frozen=True)
class Setup:
    """One experiment: what is learned, by what, judged how. Its id is the hash of its canonical JSON.

    >>> setup = Setup(problems.Parity(n=30, k=3))
    >>> Setup.from_json(setup.to_json()) == setup
    True
    """

    problem: Any
    learner: Learner = field(default_factory=Learner)
    protocol: Protocol = field(default_factory=Protocol)

    def __post_init__(self) -> None:
        for name, kind in (("problem", problems.Parity), ("learner", Learner), ("protocol", Protocol)):
            given = getattr(self, name)
            require(isinstance(given, kind), f"the {name} of a Setup must be a {kind.__name__}, not {given!r}")
        if self.problem.sample is not None:
            require(self.learner.batch * self.protocol.max_steps < 2**31,
                    "batch times max_steps must be below 2^31 with a finite sample")
        if self.problem.inputs is None:  # random words are numbered with 32 bits, some laws take one more an input
            most = 2**32 // (self.problem.words + 1)
            require(self.protocol.eval_size <= most,
                    f"eval_size must be at most {most} with n={self.problem.n}, not {self.protocol.eval_size}")

    @functools.cached_property
    def id(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @functools.cached_property
    def functions(self) -> list[str]:
        """The names of the user's own functions in this Setup."""
        return sorted(set(re.findall(r'"([^"@]+)@[0-9a-f]{12}"', self.to_json())))

    @functools.cached_property
    def program(self) -> Setup:
        """The Setup less what each run carries by itself (rate, gradient noise, support, label noise, step limit).

        Setups with equal programs train together, in one compiled program.
        """
        optimiser = replace(self.learner.optimiser, lr=1.0, noise=float(self.learner.optimiser.noise > 0))
        problem = replace(self.problem, k=0, support=(), noise=float(self.problem.noise > 0))
        protocol = replace(self.protocol, max_steps=1)
        return Setup(problem, replace(self.learner, optimiser=optimiser), protocol)

    def params(self, key: Any) -> Any:
        """Initial params from a run's INIT key."""
        return self.learner.network.init(key, self.problem.n, self.learner.init)

    def check(self) -> None:
        """Try all shapes without computing anything; a user's mistake is named."""
        checks.check(self)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, whole numbers without a decimal point."""
        document = {"conventions": CONVENTIONS, **encode(self)}
        return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Setup:
        """The Setup a JSON text describes; a text that names a user's function cannot be turned back into one."""
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.pop("conventions", None) != CONVENTIONS:
            raise InvalidInput(f"not a Setup of conventions {CONVENTIONS}: {text[:60]!r}")
        setup = decode(document)
        require(isinstance(setup, cls), f"not a Setup: {text[:60]!r}")
        return setup


CLASSES: dict[str, type] = {
    "setup": Setup,
    "learner": Learner,
    "protocol": Protocol,
    "parity": problems.Parity,
    "polynomial": problems.Polynomial,
    "leaky-parity": problems.LeakyParity,
    "mlp": networks.MLP,
    "neuron": networks.Neuron,
    "polynet": networks.PolyNet,
    "disjoint-polynet": networks.DisjointPolyNet,
    "transformer": networks.Transformer,
    "network": networks.Network,
    "sgd": optimisers.SGD,
    "adam": optimisers.Adam,
    "sign-sgd": optimisers.SignSGD,
    "optax": optimisers.Optax,
}
NAMES = {cls: name for name, cls in CLASSES.items()}


def encode(value: Any) -> Any:
    """A Setup, or a part of one, as plain JSON values."""
    if isinstance(value, (Activation, Init, Loss, Schedule)):
        return value.spec
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = NAMES.get(type(value)) or specs.fingerprint(type(value))
        fields = (f for f in dataclasses.fields(value) if not _is_late_default(f, getattr(value, f.name)))
        body = {f.name: encode(getattr(value, f.name)) for f in fields}
        return {"type": kind, **body}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    number = getattr(value, "item", lambda: value)()
    if isinstance(number, (int, float)):
        return int(number) if float(number).is_integer() else number
    if update := getattr(value, "update", None):  # an optax transformation
        return specs.fingerprint(update)
    if callable(value):
        return specs.fingerprint(value)
    raise InvalidInput(f"a Setup cannot hold {value!r}")


def _is_late_default(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether a field that came later (``metadata={"late": True}``) has its default: ids of before stay as they are."""
    return bool(field.metadata.get("late")) and value == field.default


def decode(value: Any) -> Any:
    """The inverse of :func:`encode`."""
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, str) and "@" in value:
        raise InvalidInput(f"a user's function cannot be rebuilt from its name: {value}")
    if not isinstance(value, dict):
        return value
    body = dict(value)
    kind = body.pop("type", None)
    if kind not in CLASSES:
        raise unknown("type in a Setup's JSON", str(kind), CLASSES)
    try:
        return CLASSES[kind](**{name: decode(item) for name, item in body.items()})
    except TypeError as error:
        raise InvalidInput(f"a Setup's JSON has wrong fields for {kind!r}: {error}") from None
