"""Setup = Problem + Learner + Protocol: validated, written as canonical JSON, identified by its hash."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paritylab.errors import InvalidInput, require, unknown, whole
from paritylab.functions import named
from paritylab.functions.finding import Offered, changed
from paritylab.functions.traced import Traced, TracedObject
from paritylab.setups import checks, identity, networks, optimisers, plain, problems
from paritylab.setups.ids import id_of
from paritylab.setups.inits import Init, InitLike, init, rebuilt
from paritylab.setups.losses import Loss, LossLike, loss
from paritylab.setups.networks.activations import Activation
from paritylab.setups.problems import laws
from paritylab.setups.protocol import Protocol as Protocol
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


@dataclass(frozen=True, eq=False)
class Setup(Shown):
    """One experiment: what is learned, by what, judged how. Its id is the hash of its canonical JSON.

    Your own functions are in it by what they compute, as JAX traces it: as they are when the JSON or the id is asked
    for, or when you measure, which keeps them as they are then (:meth:`now`). Setups are equal if their ids are.

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

    @property
    def id(self) -> str:
        """The digest of the canonical JSON; of functions it has what they compute, and not their names."""
        return self._settled_id if self.is_settled else self.now().id

    @functools.cached_property
    def _settled_id(self) -> str:
        return id_of(self.to_json())

    @functools.cached_property
    def functions(self) -> list[str]:
        """The names of the user's own functions in this Setup."""
        return [] if self._plain is not None else sorted({named.title(each) for each in identity.own(self)})

    @property
    def is_settled(self) -> bool:
        """Whether its functions have been traced for it; they stay as they were then."""
        return "_settled" in vars(self) or not self.functions

    @property
    def failure(self) -> str:
        """What is wrong with its functions, in a line, if that was found when they were traced; empty if nothing."""
        return vars(self).get("_settled", "")

    def settled(self, failure: str = "") -> Setup:
        """This Setup, made of traced functions alone."""
        object.__setattr__(self, "_settled", failure)
        return self

    def now(self) -> Setup:
        """The same Setup with its functions as they are now, traced; InvalidInput says which cannot be trained."""
        (setup,) = identity.traced([self])
        require(not setup.failure, setup.failure)
        return setup

    def derived(self, **changes: Any) -> Setup:
        """The same with other fields, none of them of the user's; functions stay as they were traced."""
        made = replace(self, **changes)
        return made.settled(self.failure) if self.is_settled else made

    @functools.cached_property
    def program(self) -> Setup:
        """The Setup less what each run carries by itself (rate, gradient noise, support, label noise, step limit).

        Setups with equal programs train together, in one compiled program.
        """
        learner, noisy = self.learner, float(self.learner.optimiser.noise > 0)

        def made() -> Setup:
            alike = replace(learner, optimiser=replace(learner.optimiser, lr=1.0, noise=noisy))
            protocol = replace(self.protocol, max_steps=1)
            return self.derived(problem=self.problem.shared, learner=alike, protocol=protocol)

        if self.functions:
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
        return self.derived(problem=problems.Parity(self.problem.n, 0), learner=Learner(network, self.learner.init),
                            protocol=Protocol())

    def params(self, key: Any) -> Any:
        """Initial params from a run's INIT key."""
        return self.learner.network.init(key, self.problem.n, self.learner.init)

    def check(self) -> None:
        """Try all shapes without computing anything; a user's mistake is named."""
        if self.functions:
            self.now()  # which has tried them
        else:
            checks.rehearse(self)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, whole numbers without a decimal point."""
        return self._json if self.is_settled else self.now()._json

    def document(self) -> Any:
        """The Setup as plain JSON values; functions that are not traced yet have their names alone."""
        return {"conventions": CONVENTIONS, **(encode if self.is_settled else named_in)(self)}

    @functools.cached_property
    def _plain(self) -> str | None:
        """The Setup in JSON without its conventions, if nothing of the user's is in it."""
        return plain.text(self, NAMES)

    @functools.cached_property
    def _json(self) -> str:
        if plain_text := self._plain:
            return f'{{"conventions":{CONVENTIONS},{plain_text[1:]}'
        return canonical(self.document())

    def __reduce__(self) -> Any:
        given = identity.untraced(self) if self.functions else self  # traces are of this process
        return Setup, (given.problem, given.learner, given.protocol)

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Setup) and self.id == other.id)

    @classmethod
    def from_json(cls, text: str, functions: Iterable[Any] = ()) -> Setup:
        """The Setup a JSON text describes.

        Of a user's own function the text has the name and a digest of what it computes. It is looked for by its name
        among ``functions``: functions, classes and objects, and modules, which stand for all that is in them. One that
        computes something else is refused, and nothing that the text names is ever imported.

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
        wanted = id_of(canonical({"conventions": CONVENTIONS, **document}))
        failure = None
        for choice in Offered(functions).choices(document):
            try:
                setup = decode(document, choice)
                require(isinstance(setup, cls), f"not a Setup: {text[:60]!r}")
                setup = setup.now()
            except InvalidInput as error:
                failure = error
                continue
            if not choice or setup.id == wanted:
                return setup
            failure = changed(document, setup.document())
        assert failure is not None
        raise failure


_PROGRAMS: weakref.WeakValueDictionary[Any, Setup] = weakref.WeakValueDictionary()
"""Those in use: of thousands of Setups that differ in a rate, the program is made once."""


def _but(part: Any, *left_out: str) -> tuple[Any, ...]:
    """The type of a dataclass and its fields, less some."""
    names = [each.name for each in dataclasses.fields(part)]
    return type(part), *(getattr(part, name) for name in names if name not in left_out)


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


def encode(value: Any) -> Any:
    """A Setup, or a part of one, as plain JSON values; InvalidInput if some of it is not traced, and has no digest."""
    return _encoded(value, traced=True)


def named_in(value: Any) -> Any:
    """The same with the names alone of functions that are not traced."""
    return _encoded(value, traced=False)


def _encoded(value: Any, traced: bool) -> Any:
    kind, encode = type(value), functools.partial(_encoded, traced=traced)
    if value is None or kind in (str, bool, int):
        return value
    if kind is float:
        require(math.isfinite(value), f"a Setup has finite numbers, not {value}")
        return int(value) if value.is_integer() else value
    if kind in (tuple, list):
        return [encode(item) for item in value]
    if kind in (Activation, Init, Loss, Schedule):
        require(not traced or not value.spec.endswith(named.MARK), f"{value.spec.rstrip(named.MARK)} is not traced")
        return value.spec
    if kind in NAMES:
        return {"type": NAMES[kind], **_plain_fields(value, value, encode)}
    if isinstance(value, optimisers.OwnOptimiser):
        return {"type": value.rule.spec, **_plain_fields(value.rule.given, value, _shown)}
    if isinstance(value, TracedObject) and dataclasses.is_dataclass(value.given):
        return {"type": value.spec, **_plain_fields(value.given, value, _shown)}
    require(not isinstance(value, (problems.AnyProblem, problems.Stage, problems.Target, laws.Law)),
            f"{kind.__name__} is a class of your own: write what it does as a function, target= or inputs= of"
            " pl.Problem")
    known = isinstance(value, (Traced, TracedObject)) or (not traced and (
        isinstance(value, (named.Named, optimisers.Optimiser)) or callable(value) or hasattr(value, "init")))
    require(known, f"a Setup cannot hold {value!r:.60}, a {kind.__name__}")
    return named.written(value)


def canonical(document: Any) -> str:
    """JSON with sorted keys and no spaces."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain_fields(owner: Any, values: Any, encode: Callable[[Any], Any]) -> dict[str, Any]:
    """The fields of a dataclass, with the values of another object where it has them."""
    return {each.name: encode(getattr(values if hasattr(values, each.name) else owner, each.name))
            for each in dataclasses.fields(owner)}


def _shown(value: Any) -> Any:
    """A field of the user's own object, for tables; what it computes with is in the object's digest."""
    try:
        return named_in(value)
    except InvalidInput:
        return named.written(value)


def decode(value: Any, choice: Mapping[str, Any]) -> Any:
    """The inverse of :func:`encode`; ``choice`` has the user's own functions by how text has them."""
    if isinstance(value, list):
        return tuple(decode(item, choice) for item in value)
    if isinstance(value, str):
        return choice.get(value, value)
    if not isinstance(value, dict):
        return value
    body = dict(value)
    kind = body.pop("type", None)
    made = choice.get(kind) or CLASSES.get(kind)
    if made is None:
        raise unknown("type in a Setup's JSON", str(kind), CLASSES)
    if not isinstance(made, type):
        return made
    if made is Learner and isinstance(body.get("init"), str):
        body["init"] = rebuilt(body["init"], choice)
    try:
        return made(**{name: decode(item, choice) for name, item in body.items()})
    except TypeError as error:
        raise InvalidInput(f"a Setup's JSON has wrong fields for {kind!r}: {error}") from None
