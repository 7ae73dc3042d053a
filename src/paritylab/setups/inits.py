"""Inits: the law of one initial weight, by spec with words before it, or as a user's sampler."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, in_a_line, real, require, whole
from paritylab.functions.named import MARK, title, written
from paritylab.functions.traced import Traced, combined
from paritylab.later import jax
from paritylab.setups import specs
from paritylab.setups.genuine import accepted, builtin
from paritylab.setups.weights import LAWS as LAWS
from paritylab.setups.weights import Characteristic as Characteristic
from paritylab.setups.weights import FromWords as FromWords
from paritylab.setups.weights import Init as Init
from paritylab.setups.weights import Layers as Layers
from paritylab.setups.weights import Sampler as Sampler
from paritylab.setups.weights import Scale as Scale
from paritylab.setups.weights import discrete as discrete
from paritylab.setups.weights import fan_in_scale as fan_in_scale
from paritylab.setups.weights import gaussian as gaussian
from paritylab.setups.weights import kaiming as kaiming
from paritylab.setups.weights import mean_field as mean_field
from paritylab.setups.weights import mirror as mirror
from paritylab.setups.weights import normal as normal
from paritylab.setups.weights import perturbed_rademacher as perturbed_rademacher
from paritylab.setups.weights import rademacher as rademacher
from paritylab.setups.weights import sparse_rademacher as sparse_rademacher
from paritylab.setups.weights import sphere as sphere
from paritylab.setups.weights import torch as torch
from paritylab.setups.weights import truncated as truncated
from paritylab.setups.weights import uniform as uniform
from paritylab.setups.weights import uniform_perturbed as uniform_perturbed
from paritylab.setups.weights import unscaled as unscaled
from paritylab.setups.weights import xavier as xavier
from paritylab.setups.weights import xavier_sign as xavier_sign

InitLike = Any
"""A spec, an Init or a sampler of the user's own; an Init once its owner is made."""
ORDER = "fixed:3 mirrored unbiased raised:0.5 logits released, then the law"
RELEASED_POINTS = {"sparse-rademacher:0.5": 4, "sparse-rademacher:0.2": 5}


def mirrored(law: str | Init | Sampler) -> Init:
    """The given law, with the last hidden layer's units in pairs of opposite output sign: the network starts at 0."""
    base = init(law)
    require(base.fixed is None, f"write a fixed and mirrored law as 'fixed:{base.fixed} mirrored ...', in this order")
    return _worded(base, "mirrored", mirrored=True)


def released(law: str | Init) -> Init:
    """A law of Abbe et al. 2024 at the scale of their code, which divides by the *sample* variance of a list of points.

    So the weights of ``discrete`` laws and of sparsities 1/2 and 1/5 (lists of four and five points) have variances
    3/4, 3/4 and 4/5 of 1/fan_in; the other laws are as in the paper.

    >>> released("discrete:-2,-1,1,2").scale(50, 1)**2 * 2.5 * 50
    0.75
    """
    base = _unprefixed(init(law), "unbiased", "raised:", "logits")
    points = base.spec.count(",") + 1 if base.spec.startswith("discrete:") else RELEASED_POINTS.get(base.spec)
    factor = math.sqrt(1 - 1 / points) if points else 1.0
    return _worded(base, "released", scale=lambda a, b: factor * base.scale(a, b))


def unbiased(law: str | Init | Sampler) -> Init:
    """The given law for weights; biases start at 0.

    >>> unbiased("kaiming").spec
    'unbiased kaiming'
    """
    base = _unprefixed(init(law), "fixed:", "mirrored", "unbiased")
    output = None if base.output is None else replace(base.output, biased=False)
    return _worded(base, "unbiased", biased=False, output=output)


def raised(law: str | Init | Sampler, by: float) -> Init:
    """The given law, but output biases start so much higher: a network that starts near 1/2, not near 0.

    With labels of +-1/2 (``scale=0.5``) that is a network which learns the targets 0 and 1 from an output near 0.

    >>> raised("torch", 0.5).spec
    'raised:0.5 torch'
    """
    base = _unprefixed(init(law), "fixed:", "mirrored", "unbiased", "raised:")
    by = real("what output biases are raised by", by)
    require(by != 0, "output biases raised by 0 are those of the law itself")
    return _worded(base, specs.render("raised", (by,)), raised=by)


def logits(law: str | Init | Sampler) -> Init:
    """The given law, for a network whose output stands for two logits: the difference of the second and the first.

    So the output layer is the difference of two independent draws, those of a layer with twice the outputs. The
    logistic loss of the difference is the cross-entropy of the two. An optimiser moves the difference twice as far as
    each logit: with ``rates=(1, ..., 1, 2)`` Adam and SGD without weight decay move it as they would move both.

    >>> logits("torch").spec
    'logits torch'
    """
    base = _unprefixed(init(law), "fixed:", "mirrored", "unbiased", "raised:", "logits")
    one = base.output or base

    def difference(key: Any, shape: tuple[int, ...]) -> Any:
        first, second = jax.random.split(key)
        return one.sample(second, shape) - one.sample(first, shape)

    output = replace(one, sample=difference, characteristic=None, scale=lambda a, b: one.scale(a, 2 * b), output=None)
    return _worded(base, "logits", output=output, logits=True)


def _unprefixed(base: Init, *later: str) -> Init:
    """The law, if none of these words, which come before, is in its spec already."""
    word = base.spec.partition(" ")[0] if " " in base.spec else ""
    require(not word.startswith(later), f"write the words of an init in this order: {ORDER}; not {word!r} so late")
    return base


def fixed(law: str | Init | Sampler, number: int) -> Init:
    """The given law, but every run starts from the same weights: those drawn from ``jax.random.key(number)``.

    The data still differ from run to run.

    >>> fixed("mirrored kaiming", 3).spec
    'fixed:3 mirrored kaiming'
    """
    base = init(law)
    require(base.fixed is None, "a fixed start has one number, not two")
    number = whole("the number of a fixed start", number)
    require(0 <= number < 2**32, f"the number of a fixed start must be at least 0 and below 2^32, not {number}")
    return _worded(base, f"fixed:{number}", fixed=number)


def custom(sample: Sampler, characteristic: Characteristic | None = None, scale: Scale | None = None) -> Init:
    """A law of your own: ``sample(key, shape)`` draws the weights and biases of a layer, which are used as returned.

    ``scale(fan_in, fan_out)`` multiplies them, if given. ``characteristic(t)`` is the characteristic function of one
    weight, for alignments.
    """
    return own(Init("", sample, characteristic, scale or unscaled))


def own(given: Init) -> Init:
    """A law of the user's own with the spec that follows from all its fields."""
    require(given.grain is None, f"only a built-in init has a grain: leave out grain={given.grain!r}")
    return replace(given, spec=" ".join([*_words(given), _name(given)]))


def plain(given: Init) -> Init:
    """A law of the user's own without the words before it."""
    return own(replace(given, fixed=None, mirrored=False, biased=True, raised=0.0, logits=False))


def _worded(base: Init, word: str, **changes: Any) -> Init:
    """The same law, with a word before it and what the word stands for."""
    made = replace(base, spec=f"{word} {base.spec}", **changes)
    return own(made) if base.is_own else builtin(made)


def _words(given: Init) -> list[str]:
    """The words for the plain fields of a law, in their order."""
    words = [] if given.fixed is None else [f"fixed:{given.fixed}"]
    words += ["mirrored"] * given.mirrored + ["unbiased"] * (not given.biased)
    return words + ([specs.render("raised", (given.raised,))] if given.raised else []) + ["logits"] * given.logits


def _name(given: Init) -> str:
    """The law of the user's own without the words: ``my_module.sampler@0123456789abcdef``."""
    functions = _functions(given)
    about = [*_words(given.output)] if given.output is not None else []
    if given.characteristic is not None:
        about.append(_values(given.characteristic))
    if functions == [given.sample] and not about:
        return written(given.sample)
    if not all(isinstance(each, Traced) for each in functions):
        return f"{title(given.sample)}{MARK}"
    return f"{title(given.sample)}{MARK}{combined([each.identity for each in functions] + about)}"


def _functions(given: Init) -> list[Any]:
    """What draws and scales the weights of all layers."""
    output = [] if given.output is None else _functions(given.output)
    return [given.sample, *([] if given.scale is unscaled else [given.scale]), *output]


def with_functions(given: Init, wrap: Callable[[str, Any], Any]) -> Init:
    """A law of the user's own with all its functions wrapped, ``wrap(place, function)``."""
    return own(replace(
        given,
        sample=wrap("init", given.sample),
        scale=unscaled if given.scale is unscaled else wrap("scale", given.scale),
        output=None if given.output is None else with_functions(given.output, wrap),
    ))


def _values(characteristic: Characteristic) -> str:
    """What tells characteristic functions apart, which nothing is trained with: their values, rounded."""
    try:
        values = np.asarray(characteristic(np.linspace(0.0, 30.0, 301)), complex)
    except Exception as error:
        raise InvalidInput(f"the characteristic function of an init failed: {in_a_line(error)}") from error
    return hashlib.sha256(np.round(values, 6).tobytes()).hexdigest()


PREFIXES: dict[str, Callable[[Any], Init]] = {
    "mirrored": mirrored, "unbiased": unbiased, "logits": logits, "released": released,
}


def init(given: str | Init | Sampler) -> Init:
    """The init a user means by a spec such as ``perturbed-rademacher:0.1``, or by a sampler of their own.

    A leading ``mirrored`` asks for pairs of opposite output sign, a leading ``fixed:number`` for one start for all
    runs: ``mirrored kaiming``, ``fixed:3 torch``, ``fixed:3 mirrored kaiming``. A leading ``unbiased`` starts biases at
    0, ``raised:0.5`` output biases so much higher, ``logits`` makes one output of two: ``unbiased logits torch``. A
    leading ``released`` asks for the scale of the code of Abbe et al. (2024): ``released discrete:-2,-1,1,2``.

    >>> init("discrete:-2,-1,1,2").spec
    'discrete:-2,-1,1,2'
    """
    if isinstance(given, Init):
        require(type(given) is Init, f"a subclass of Init cannot be told from others: {type(given).__name__}; use"
                                     " inits.custom(sample, scale=...)")
        return accepted("init", given, lambda: own(given))
    if not isinstance(given, str):
        require(callable(given), f"an init must be a spec or a function, not {given!r}")
        return custom(given)
    return builtin(_named(given))


def rebuilt(spec: str, choice: Mapping[str, Any]) -> Init:
    """The init of a spec; ``choice`` has the user's samplers, or whole Inits, by how text has them.

    ``fixed:3 mirrored my_module.sampler@0123456789abcdef`` is a sampler with words before it.
    """
    word, _, law = spec.partition(" ")
    if spec in choice or not law:
        return init(choice.get(spec, spec))
    if word in PREFIXES:
        return PREFIXES[word](rebuilt(law, choice))
    if word.startswith("fixed:") and word[6:].isdecimal():
        return fixed(rebuilt(law, choice), int(word[6:]))
    if word.startswith("raised:"):
        return raised(rebuilt(law, choice), _number(word))
    return init(spec)


def _number(word: str) -> float:
    """What output biases are raised by."""
    try:
        return float(word.removeprefix("raised:"))
    except ValueError:
        raise InvalidInput(f"init {word!r}: write a raised start as 'raised:0.5 torch', with a number") from None


def _named(given: str) -> Init:
    word, space, rest = given.partition(" ")
    if space and word in PREFIXES:
        return PREFIXES[word](rest)
    if given.startswith("fixed:"):
        number, _, law = given.removeprefix("fixed:").partition(" ")
        require(number.isdecimal(), f"init {given!r}: write a fixed start as 'fixed:3 torch', with a whole number")
        return fixed(law, int(number))
    if space and word.startswith("raised:"):
        return raised(rest, _number(word))
    arities = {name: (fewest, most) for name, (_, fewest, most) in LAWS.items()}
    name, numbers = specs.parse("init", given, arities)
    if name == "discrete" and len(set(numbers)) != len(numbers):
        raise InvalidInput(f"init {given!r}: the points must differ")
    return LAWS[name][0](*numbers)
