"""The user's functions in a Setup, traced where training calls them: what they compute is what its id knows them by."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paritylab.errors import InvalidInput
from paritylab.functions.named import Named, title
from paritylab.functions.programs import afresh, in_single_precision
from paritylab.functions.traced import Traced, TracedObject
from paritylab.setups import checks, inits, networks
from paritylab.setups.networks.activations import Activation
from paritylab.setups.optimisers import Optax, OwnOptimiser, is_builtin
from paritylab.setups.problems.targets import Target

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup

Wrap = Callable[[str, Any], Any]
METHODS = {"network": ("init", "apply"), "transformation": ("init", "update"),
           "optimiser": ("start", "move", "layer_rates")}


def mapped(setup: Setup, wrap: Wrap) -> Setup:
    """The Setup with ``wrap(place, it)`` in place of everything of the user's in it."""
    problem, learner, optimiser = setup.problem, setup.learner, setup.learner.optimiser
    if problem.sampler is not None:
        problem = problem.with_sampler(wrap("inputs", problem.sampler))
    target = getattr(problem, "target", None)
    if target is not None and not isinstance(target, Target):
        problem = replace(problem, target=wrap("target", target))
    init = inits.with_functions(learner.init, wrap) if learner.init.is_own else learner.init
    loss = wrap("loss", learner.loss.function) if learner.loss.is_own else learner.loss
    schedule = optimiser.schedule
    if not is_builtin(optimiser):
        optimiser = wrap("optimiser", optimiser)
    if schedule.is_own:
        schedule = wrap("schedule", schedule.function)
        if is_builtin(optimiser) or isinstance(optimiser, OwnOptimiser):  # one that is not traced keeps its own
            optimiser = replace(optimiser, schedule=schedule)
    if isinstance(optimiser, Optax):
        optimiser = replace(optimiser, transformation=wrap("transformation", optimiser.transformation))
    learner = replace(learner, network=_network(learner.network, wrap), init=init, loss=loss, optimiser=optimiser)
    return replace(setup, problem=problem, learner=learner)


def _network(network: Any, wrap: Wrap) -> Any:
    if type(network) is networks.Network:
        return networks.Network(wrap("make", network.make), wrap("forward", network.forward))
    if networks.is_own(network):
        return wrap("network", network)
    changed = {field.name: wrap("activation", part.function) for field in dataclasses.fields(network)
               if isinstance(part := getattr(network, field.name), Activation) and part.is_own}
    return replace(network, **changed) if changed else network


def own(setup: Setup) -> list[Any]:
    """The user's own functions and objects in a Setup, as they were given."""
    found: list[Any] = []
    mapped(setup, lambda place, it: found.append(original(it)) or it)
    return found


def original(it: Any) -> Any:
    """What the user gave."""
    it = it.rule if isinstance(it, OwnOptimiser) else it
    return it.given if isinstance(it, Traced | TracedObject) else it


def untraced(setup: Setup) -> Setup:
    """The Setup with the functions that the user gave."""
    return mapped(setup, lambda place, it: original(it))


def traced(setups: Sequence[Setup]) -> list[Setup]:
    """Setups with the user's functions as they are now, traced; their ``failure`` says what is wrong with one.

    Setups that differ in nothing that a function sees (rates, supports, step limits) have theirs traced once.
    """
    known: dict[Any, tuple[list[Any], str]] = {}
    return [setup if setup.is_settled else _traced(setup, known) for setup in setups]


def parts(setup: Setup) -> list[Any]:
    """What is the user's in a traced Setup, each with a ``spec``: as text has it."""
    found: list[Any] = [inits.plain(setup.learner.init)] if setup.learner.init.is_own else []
    mapped(setup, lambda place, it: found.append(it.rule if isinstance(it, OwnOptimiser) else it) or it)
    return found


def _traced(setup: Setup, known: dict[Any, tuple[list[Any], str]]) -> Setup:
    raw = untraced(setup)
    key = _seen(raw), *map(id, own(raw))
    if key not in known:
        made: list[Any] = []
        rehearsed = mapped(raw, lambda place, it: made.append(_opened(place, it)) or made[-1])
        if isinstance(forward := getattr(rehearsed.learner.network, "forward", None), Traced):
            forward.what += f", given params by {title(rehearsed.learner.network.make)},"
        try:
            with afresh(), in_single_precision():
                checks.rehearse(rehearsed)
            failure = ""
        except InvalidInput as error:
            failure = str(error)
        for each in made:
            for function in functions_in(each):
                function.close()
        known[key] = made, failure
    made, failure = known[key]
    left = iter(made)
    return mapped(raw, lambda place, it: next(left)).settled(failure)


def _seen(raw: Setup) -> str:
    """What functions see of a Setup beside their arguments."""
    shared = raw if not is_builtin(raw.learner.optimiser) else raw.program
    return json.dumps(shared.document(), sort_keys=True)


def _opened(place: str, it: Any) -> Any:
    """Something of the user's, ready to be traced wherever it is called."""
    vouched = it.name if isinstance(it, Named) else None
    what = f"{checks.WORDS.get(place, place)} {title(it)}"
    if place not in METHODS:
        return Traced(it, what, checks.DEMANDS.get(place), vouched)
    methods = {name: Traced(getattr(it, name), what, checks.DEMANDS.get(f"{place}.{name}"), vouched)
               for name in METHODS[place]}
    made = TracedObject(it, methods)
    return OwnOptimiser.of(made) if place == "optimiser" else made


def functions_in(it: Any) -> Sequence[Traced]:
    """The traced functions of something of the user's."""
    it = it.rule if isinstance(it, OwnOptimiser) else it
    return list(it.methods.values()) if isinstance(it, TracedObject) else [it]
