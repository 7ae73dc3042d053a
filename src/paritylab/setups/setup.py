"""Setup = Problem + Learner + Protocol: validated, written as canonical JSON, identified by its hash."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import numbers
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from paritylab.errors import InvalidInput, flag, real, require, single, unknown, whole
from paritylab.functions import fingerprints, reachable, tracing
from paritylab.functions.finding import Offered
from paritylab.setups import checks, networks, optimisers, plain, problems
from paritylab.setups.inits import Init, InitLike, init, rebuilt
from paritylab.setups.losses import Loss, LossLike, loss
from paritylab.setups.networks.activations import Activation
from paritylab.setups.problems import laws
from paritylab.setups.schedules import Schedule
from paritylab.setups.words import Shown

CONVENTIONS = 1
"""Version of what a Setup means in numbers (streams, checks, updates); part of every Setup's id."""


@dataclass(frozen=True)
class Learner(Shown):
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
                f"an optimiser must be one of SGD, Adam, RMSProp, SignSGD, Optax, not {self.optimiser!r}")
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
    completes ``consecutive`` checks in a row with accuracy of at least ``threshold``. An output is right if it has its
    label's sign (0 has none); with ``within``, if it is at most so far from its label, for targets that are numbers.
    Where there are several tasks, each must reach the threshold on its own share of the inputs. With ``until_loss`` a
    check asks something else: whether the loss on the finite training sample, with the labels it trains on, is below.
    """

    max_steps: int = 100_000
    eval_every: int = 10
    eval_size: int = 8192
    threshold: float = 1.0
    consecutive: int = 1
    fresh: bool = False
    within: float | None = field(default=None, metadata={"late": True})
    until_loss: float | None = field(default=None, metadata={"late": True})

    def __post_init__(self) -> None:
        for name in ("max_steps", "eval_every", "eval_size", "consecutive"):
            value = whole(name, getattr(self, name))
            object.__setattr__(self, name, value)
            require(value >= 1, f"{name} must be at least 1, not {value}")
            require(value < 2**31, f"{name} must be below 2^31, not {value}")
        require(self.eval_size <= 2**24, f"eval_size must be at most 2^24, not {self.eval_size}")
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        object.__setattr__(self, "fresh", flag("fresh", self.fresh))
        if self.within is not None:
            object.__setattr__(self, "within", single("within", self.within))
            require(self.within >= 0, f"within must be at least 0, not {self.within:g}")
        if self.until_loss is not None:
            object.__setattr__(self, "until_loss", single("until_loss", self.until_loss))
            require(self.threshold == 1, "until_loss takes the place of a threshold: give one of the two")
        require(0 < self.threshold <= 1, f"threshold must be in (0, 1], not {self.threshold:g}")

    @property
    def allowed_errors(self) -> int:
        """The most errors a check may show and still count."""
        return self.allowed_of(self.eval_size)

    def on_all(self, size: int) -> Protocol:
        """The same where there are just so many inputs to evaluate on."""
        require(self.eval_size in (size, Protocol.eval_size),
                f"eval_size must be {size}, the number of inputs to evaluate on, or not given; not {self.eval_size}")
        require(not self.fresh, "fresh=True draws inputs anew, and these are given")
        return replace(self, eval_size=size)

    def allowed_of(self, size: int) -> int:
        """The same of a part of the inputs."""
        return int((1 - self.threshold) * size + 1e-9)


@dataclass(frozen=True, eq=False)
class Setup(Shown):
    """One experiment: what is learned, by what, judged how. Its id is the hash of its canonical JSON.

    A user's own functions are in it by their fingerprints, taken when the JSON, the id or the hash is first asked for;
    whoever measures takes them again (:meth:`now`). Setups are equal if their JSON is.

    >>> setup = Setup(problems.Parity(n=30, k=3))
    >>> Setup.from_json(setup.to_json()) == setup
    True
    """

    problem: problems.AnyProblem
    learner: Learner = field(default_factory=Learner)
    protocol: Protocol = field(default_factory=Protocol)

    def __post_init__(self) -> None:
        for name, kind in (("problem", problems.AnyProblem), ("learner", Learner), ("protocol", Protocol)):
            given = getattr(self, name)
            require(isinstance(given, kind),
                    f"the {name} of a Setup must be a {kind.__name__.removeprefix('Any')}, not {given!r}")
        if self.problem.evaluated is not None:
            object.__setattr__(self, "protocol", self.protocol.on_all(self.problem.evaluated))
        if self.problem.sample is not None:
            require(self.learner.batch * self.protocol.max_steps < 2**31,
                    "batch times max_steps must be below 2^31 with a finite sample")
        require(self.protocol.until_loss is None or self.problem.sample is not None,
                "until_loss is about the loss on a finite sample, which this problem has not")
        for stage in self.problem.stages:
            require((stage.batch or 1) <= self.learner.batch,
                    f"the batch of a stage must be at most the Learner's {self.learner.batch}, not {stage.batch}")
        if self.problem.packed:  # random words are numbered with 32 bits
            most = 2**32 // max(self.problem.numbered, self.problem.words + 1)
            require(self.protocol.eval_size <= most,
                    f"eval_size must be at most {most} with n={self.problem.n}, not {self.protocol.eval_size}")

    @functools.cached_property
    def id(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @functools.cached_property
    def functions(self) -> list[str]:
        """The names of the user's own functions in this Setup."""
        return [] if self._plain is not None else sorted({fingerprints.name(each) for each in users(self)})

    def now(self) -> Setup:
        """The same Setup with the fingerprints that its functions have now."""
        if not self.functions:
            return self
        made = fingerprints.at_this_moment(self, lambda: replace(self))
        return fingerprints.at_this_moment(made, lambda: made)

    @functools.cached_property
    def program(self) -> Setup:
        """The Setup less what each run carries by itself (rate, gradient noise, support, label noise, step limit).

        Setups with equal programs train together, in one compiled program.
        """
        learner, noisy = self.learner, float(self.learner.optimiser.noise > 0)

        def made() -> Setup:
            alike = replace(learner, optimiser=replace(learner.optimiser, lr=1.0, noise=noisy))
            return Setup(self.problem.shared, alike, replace(self.protocol, max_steps=1))

        if self.functions:  # which are others at another time
            return made()
        rest = _but(learner.optimiser, "lr", "noise"), noisy, _but(self.protocol, "max_steps")
        alike = self.problem, learner.network, learner.init, learner.loss, learner.batch, *rest
        try:
            found = _PROGRAMS.get(alike)
        except TypeError:  # given examples have no hash
            return made()
        if found is None:
            found = _PROGRAMS[alike] = made()
        return found

    @functools.cached_property
    def start(self) -> Setup:
        """A Setup with all that decides how params start, and nothing else; activation and inputs do not."""
        network = self.learner.network
        if isinstance(network, (networks.MLP, networks.Neuron)):
            network = replace(network, activation="relu", **{"inputs": "signs"} if hasattr(network, "inputs") else {})
        return Setup(problems.Parity(self.problem.n, 0), Learner(network, self.learner.init))

    def params(self, key: Any) -> Any:
        """Initial params from a run's INIT key."""
        with tracing.apart(self):
            return self.learner.network.init(key, self.problem.n, self.learner.init)

    def check(self) -> None:
        """Try all shapes without computing anything; a user's mistake is named."""
        setup = self.now()
        with tracing.apart(setup):
            checks.check(setup)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, whole numbers without a decimal point."""
        return self._json

    @functools.cached_property
    def _plain(self) -> str | None:
        """The Setup in JSON without its conventions, if nothing of the user's is in it."""
        return plain.text(self, NAMES)

    @functools.cached_property
    def _json(self) -> str:
        if plain_text := self._plain:
            return f'{{"conventions":{CONVENTIONS},{plain_text[1:]}'
        whole = {"conventions": CONVENTIONS, **encode(self)}
        return json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def __hash__(self) -> int:
        return hash(self._json)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setup) and self._json == other._json

    @classmethod
    def from_json(cls, text: str, functions: Iterable[Any] = ()) -> Setup:
        """The Setup a JSON text describes.

        A user's own function is in the text by its fingerprint alone. It is looked for among ``functions``: functions,
        classes and objects, and modules, which stand for all that is in them. The one with that fingerprint is used;
        one that has changed since is refused, and nothing that the text names is ever imported.

        >>> def squared(f, y):
        ...     return (f - y) ** 2
        >>> setup = Setup(problems.Parity(n=30, k=3), Learner(loss=squared))
        >>> Setup.from_json(setup.to_json(), functions=[squared]).id == setup.id
        True
        """
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.pop("conventions", None) != CONVENTIONS:
            raise InvalidInput(f"not a Setup of conventions {CONVENTIONS}: {text[:60]!r}")
        offered = Offered(functions, encode)
        setup = decode(document, offered)
        require(isinstance(setup, cls), f"not a Setup: {text[:60]!r}")
        require(not offered.used or encode(setup) == document,
                f"what was rebuilt with {' and '.join(setup.functions)} is not the Setup of the text")
        return setup


_PROGRAMS: weakref.WeakValueDictionary[Any, Setup] = weakref.WeakValueDictionary()
"""Those in use: of thousands of Setups that differ in a rate, the program is made once."""


def _but(part: Any, *left_out: str) -> tuple[Any, ...]:
    """The type of a dataclass and its fields, less some."""
    return type(part), *(getattr(part, name) for name, _ in _fields(type(part)) if name not in left_out)


CLASSES: dict[str, type] = {
    "setup": Setup,
    "learner": Learner,
    "protocol": Protocol,
    "parity": problems.Parity,
    "polynomial": problems.Polynomial,
    "leaky-parity": problems.LeakyParity,
    "problem": problems.Problem,
    "data": problems.Data,
    "stage": problems.Stage,
    "product": problems.Product,
    "sum": problems.Sum,
    "table": problems.Table,
    "tasks": problems.Tasks,
    "outputs": problems.Outputs,
    "uniform": laws.Uniform,
    "biased": laws.Biased,
    "mixture": laws.Mixture,
    "active": laws.Active,
    "permuted": laws.Permuted,
    "pairs": laws.Pairs,
    "sampler": laws.Sampler,
    "mlp": networks.MLP,
    "neuron": networks.Neuron,
    "polynet": networks.PolyNet,
    "disjoint-polynet": networks.DisjointPolyNet,
    "transformer": networks.Transformer,
    "graph": networks.Graph,
    "network": networks.Network,
    "sgd": optimisers.SGD,
    "adam": optimisers.Adam,
    "rmsprop": optimisers.RMSProp,
    "sign-sgd": optimisers.SignSGD,
    "optax": optimisers.Optax,
}
NAMES = {cls: name for name, cls in CLASSES.items()}
PLAIN = frozenset((str, bool, int, float))


def encode(value: Any) -> Any:
    """A Setup, or a part of one, as plain JSON values."""
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, (Activation, Init, Loss, Schedule)):
        return value.spec if fingerprints.MARK not in value.spec else value.spec_now()
    if _is_whole(value):
        document = {"type": NAMES.get(type(value)) or _users_kind(value)}
        for name, late in _fields(type(value)):
            item = getattr(value, name)
            if late is None or item != late[0]:
                document[name] = encode(item)
        return document
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, str):
        return value
    if (number := _number(value)) is not None:
        return int(number) if float(number).is_integer() else number
    return fingerprints.fingerprint(value)


def users(value: Any) -> Iterator[Any]:
    """The user's own functions, classes and objects in a Setup, or a part of one."""
    if value is None or type(value) in PLAIN:
        return
    if isinstance(value, (Activation, Init, Loss, Schedule)):
        if fingerprints.MARK in value.spec:
            yield value.sample if isinstance(value, Init) else value.function
    elif _is_whole(value):
        if type(value) not in NAMES:
            yield type(value)
        for name, _ in _fields(type(value)):
            item = getattr(value, name)
            if item is not None and type(item) not in PLAIN:
                yield from users(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from users(item)
    elif not isinstance(value, str) and _number(value) is None:
        yield value


def _is_whole(value: Any) -> bool:
    """Whether a value goes into a Setup's JSON field by field."""
    return hasattr(type(value), "__dataclass_fields__")


def _users_kind(value: Any) -> str:
    """The fingerprint of a user's dataclass, with what its objects hold beside their fields."""
    fields = {each.name for each in dataclasses.fields(value)}
    more = {name: item for name, item in reachable.attributes(value).items() if name not in fields}
    return fingerprints.fingerprint((type(value), more) if more else type(value), type(value))


def _number(value: Any) -> float | None:
    """A finite real number of Python's, NumPy's or JAX's as one of Python's."""
    if type(value) not in (int, float) and not isinstance(value, numbers.Real) and getattr(value, "shape", 0) != ():
        return None
    number = getattr(value, "item", lambda: value)()
    return number if isinstance(number, (int, float)) and math.isfinite(number) else None


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, tuple[Any] | None], ...]:
    """The fields of a dataclass.

    Those that came later (``metadata={"late": True}``) have their default here, which is not written: ids of before
    stay as they are.
    """
    return tuple((each.name, (each.default,) if each.metadata.get("late") else None)
                 for each in dataclasses.fields(kind))


def decode(value: Any, offered: Offered) -> Any:
    """The inverse of :func:`encode`, with the user's own functions from what is offered."""
    if isinstance(value, list):
        own = offered.whole(value) if any(_is_users(item) for item in value) else None
        return tuple(decode(item, offered) for item in value) if own is None else own
    if _is_users(value):
        return offered.find(value)
    if not isinstance(value, dict):
        return value
    body = dict(value)
    kind = body.pop("type", None)
    if _is_users(kind) and (own := offered.whole(value)) is not None:
        return own
    if not _is_users(kind) and kind not in CLASSES:
        raise unknown("type in a Setup's JSON", str(kind), CLASSES)
    made = CLASSES[kind] if kind in CLASSES else offered.find(kind)
    if made is Learner and _is_users(body.get("init")):
        body["init"] = rebuilt(body["init"], offered.find)
    try:
        return made(**{name: decode(item, offered) for name, item in body.items()})
    except TypeError as error:
        raise InvalidInput(f"a Setup's JSON has wrong fields for {kind!r}: {error}") from None


def _is_users(value: Any) -> bool:
    return isinstance(value, str) and fingerprints.MARK in value
