"""A scikit-learn classifier for those who suspect a hidden parity in their data."""

from __future__ import annotations

import math
import numbers
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from paritylab.baselines import cuts, gf2, supports
from paritylab.baselines.auto import Auto, Guess
from paritylab.baselines.packed import Bits, Packed
from paritylab.baselines.sparsest import few, sparsest
from paritylab.baselines.supports import Until
from paritylab.baselines.votes import Votes, count, log_chance, parity
from paritylab.errors import real, require, unknown
from paritylab.progress import duration

special: Any = scipy.special
METHODS = ("auto", "gaussian-elimination", "meet-in-the-middle", "low-degree", "exhaustive", "sgd")
TRIALS = 64
"""Random subsets that elimination tries on labels that no parity explains."""
LIKELY = 0.05
"""From this probability on, what a parity explains is said to be chance."""

CHANCE = "as chance might: they are most likely not a parity of these features"
NOISE = "more than chance: they are noisy, or more than one parity (baselines.terms looks for several)"


class NoParity(UserWarning):
    """No parity explains all labels (``auto``: more than chance would): they are noisy, or not a parity."""


class Undetermined(UserWarning):
    """The rows do not tell the parity that was found from others."""


class ParityClassifier(ClassifierMixin, BaseEstimator):
    """Label = the parity of a hidden subset of the features, or its opposite; some labels may be flipped.

    Each feature becomes a bit: whether it lies above the midpoint of its smallest and largest training value. That is
    exact for features of two values (-1/+1, 0/1, any two numbers) and a choice for others, which ``binarise=False``
    refuses instead. A feature that is constant in training is never part of the support. Sparse matrices are taken.

    It finds one parity and nothing else: no sums of several, no majorities. By default (``auto``) it tries what the
    shape of the table and ``time_budget`` allow, keeps a record of it in ``report_``, and names a parity only if labels
    in random order would be explained as well with a probability of at most 1 %, all supports considered. Otherwise
    ``found_`` is False, a :class:`NoParity` warning is given and the commoner label is predicted. The other methods
    keep the best parity they find, and warn where it may be chance.
    :func:`paritylab.baselines.terms` looks for several parities with coefficients.

    A row of weight 2 counts as two rows. What is unlikely to be chance is judged by distinct rows, however often they
    are repeated or whatever they weigh.

    Args:
        k: size of the support for ``exhaustive``, the largest size for the others; None: as large as time allows for
            ``auto``, up to 4 for ``meet-in-the-middle``, up to 3 for ``low-degree``, ``exhaustive`` and ``sgd``.
            ``gaussian-elimination`` finds a support of any size and does not need it.
        method: ``auto``; ``gaussian-elimination`` (about as many rows as features, no noise; where labels contradict
            one another it takes the best of 64 random subsets and warns; where rows are too few it looks for the
            sparsest of the parities that explain them, and warns); ``meet-in-the-middle`` (few rows, no noise, up to 4
            of any number of features, time n^2); ``low-degree`` or ``exhaustive`` (few rows and noisy labels, time
            n^k); or ``sgd`` (a network, whose large Fourier coefficients give the support).
        binarise: whether features of more than two values are cut at the midpoint.
        time_budget: seconds that ``auto`` and ``meet-in-the-middle`` may take, about. Searches of ``low-degree`` and
            ``exhaustive`` that would take longer are refused.
        n_jobs: threads of searches; -1: all cores.
        random_state: of hashes, of the subsets, and of ``sgd``.
        width: of the network of ``sgd``, which has one hidden layer.
        lr: its learning rate.
        weight_decay: its weight decay.
        batch: its batch size.
        steps: after which it is taken as it is.

    Attributes:
        support_: positions of the features in the parity, increasing.
        negated_: whether labels are the opposite of the parity of bits (0 for ``classes_[0]``, 1 for ``classes_[1]``).
        classes_: the two labels.
        found_: whether a parity was found that chance does not explain (with probability 1 %; other methods than
            ``auto``: 5 %).
        method_: how it was found: a method's name, for ``auto`` also ``correlation`` or ``pooled-elimination``; "" if
            ``auto`` found none.
        report_: what was tried and what came of it, a line for each attempt.
        chance_: a bound on the probability that labels in random order are explained as well by any support searched.
        noise_rate_: the share of training labels that are not the parity's, by weight.
        noise_interval_: 95 % interval of the noise rate (Clopper and Pearson's), if the support is right.
        consistent_: whether the parity explains every training label.
        determined_: whether no other parity of those tried explains the labels as well (``sgd``: whether a network has
            a large coefficient at all). Where it is False, a warning says what is known.
        n_features_in_: number of features.

    >>> x = np.random.default_rng(0).integers(0, 2, (60, 400))
    >>> y = x[:, [3, 8, 210]].sum(axis=1) % 2
    >>> model = ParityClassifier().fit(x, y)
    >>> model.support_.tolist(), model.score(x, y), model.method_
    ([3, 8, 210], 1.0, 'meet-in-the-middle')
    """

    n_features_in_: int

    def __init__(
        self,
        k: int | None = None,
        method: str = "auto",
        binarise: bool = True,
        time_budget: float = 10.0,
        n_jobs: int | None = -1,
        random_state: Any = None,
        width: int = 10,
        lr: float = 1.0,
        weight_decay: float = 0.0,
        batch: int = 32,
        steps: int = 20_000,
    ) -> None:
        self.k = k
        self.method = method
        self.binarise = binarise
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.width = width
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch = batch
        self.steps = steps

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ParityClassifier:
        """Find the parity."""
        start = time.perf_counter()
        X, y = validate_data(self, X, y, accept_sparse="csc", dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self._check_parameters(X.shape[1])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        require(bool(np.any(weight > 0)), "sample_weight must be positive for some rows")
        if not np.all(weight > 0):
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._cuts = cuts.midpoints(X, self.binarise)
        bits = cuts.bits(X, self._cuts)
        generator = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        varying = np.flatnonzero(bits.any(axis=0) & ~bits.all(axis=0))
        # An index of all columns would copy the table.
        votes = count(bits if len(varying) == bits.shape[1] else bits[:, varying], labels == 1, weight)
        until = Until(start + real("time_budget", self.time_budget), supports.cores(self.n_jobs))
        found = self._search(votes, generator, until)
        self.method_ = found.method
        self.support_ = varying[found.support].astype(np.intp)
        self.negated_, self.determined_, self.chance_ = found.negated, not found.doubt, found.chance
        self.found_ = bool(found.method) and found.chance <= LIKELY
        wrong = parity(bits, self.support_.tolist(), self.negated_) != (labels == 1)
        self._estimate_noise(wrong, weight)
        self._warn(found)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The logarithm of the odds of ``classes_[1]``: its size is the same for all rows, from the noise rate."""
        ones = self._parity(X)
        size = math.log((1 - self._doubted) / self._doubted)
        return np.where(ones, size, -size)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes, from the noise rate: (errors + 1/2) / (rows + 1) for the one less likely."""
        ones = self._parity(X)
        ones = np.where(ones, 1 - self._doubted, self._doubted)
        return np.column_stack([1 - ones, ones]) if len(self.classes_) == 2 else np.ones((len(ones), 1))

    def predict(self, X: Any) -> np.ndarray:
        """The parity's labels."""
        ones = self.decision_function(X) > 0
        return self.classes_[ones.astype(np.intp) if len(self.classes_) == 2 else np.zeros(len(ones), np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # on data that are not a parity
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self, n: int) -> None:
        if self.method not in METHODS:
            raise unknown("method", str(self.method), METHODS)
        require(real("time_budget", self.time_budget) > 0, f"time_budget must be positive, not {self.time_budget}")
        if self.k is None:
            return
        require(isinstance(self.k, numbers.Integral) and not isinstance(self.k, bool),
                f"k must be a whole number in 0..{n}, or None, not {self.k!r}")
        bounded = self.method not in ("exhaustive", "gaussian-elimination")  # by k, whatever n is
        require(self.k >= 0 and (bounded or self.k <= n), f"k must be in 0..{n} (n_features={n}), not {self.k}")

    def _parity(self, X: Any) -> Bits:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csc", dtype=np.float64, reset=False)
        bits = cuts.bits(X[:, self.support_], self._cuts[self.support_])
        return parity(bits, range(len(self.support_)), self.negated_)

    def _estimate_noise(self, wrong: Bits, weight: np.ndarray) -> None:
        total, errors = float(weight.sum()), float(weight[wrong].sum())
        self.noise_rate_ = errors / total
        self.consistent_ = not bool(wrong.any())
        self._doubted = (errors + 0.5) / (total + 1)
        rows = total**2 / float((weight**2).sum())  # equal weights: their number
        e = rows * self.noise_rate_
        low = 0.0 if e <= 0 else float(special.betaincinv(e, rows - e + 1, 0.025))
        high = 1.0 if e >= rows else float(special.betaincinv(e + 1, rows - e, 0.975))
        self.noise_interval_ = (low, high)

    def _warn(self, found: Guess) -> None:
        right = f"{100 * (1 - self.noise_rate_):.1f} %"
        if self.consistent_ or (self.method == "auto" and self.found_):
            pass
        elif self.method == "auto":
            warnings.warn(f"no parity was found (report_ says what was tried); always the commoner label is predicted,"
                          f" that of {right}", NoParity, stacklevel=3)
        else:
            warnings.warn(f"no parity was found that explains all labels; this one explains {right} of"
                          f" them, {CHANCE if self.chance_ > LIKELY else NOISE}", NoParity, stacklevel=3)
        if found.doubt:
            warnings.warn(f"the data do not determine the parity: {found.doubt}", Undetermined, stacklevel=3)

    def _search(self, votes: Votes, generator: np.random.Generator, until: Until) -> Guess:
        """The parity of bits, none of which is constant, that explains the votes best."""
        if self.method == "auto":
            auto = Auto(votes, None if self.k is None else int(self.k), until, generator)
            found = auto.find()
            self.report_ = auto.report
            return found or Guess([], bool(votes.net.sum() > 0), "", 1.0)
        start = time.perf_counter()
        decided = votes.decided()
        support, doubt, supports_searched = self._by_method(decided, generator, until)
        agreement = float((np.where(parity(decided.x, support), 1, -1) * decided.net).sum())
        chance = log_chance(parity(decided.x, support), decided.labels) + supports_searched if len(decided.x) else 0.0
        found = Guess(sorted(support), agreement < 0, self.method, math.exp(min(0.0, chance)), doubt)
        self.report_ = [f"{self.method} ({time.perf_counter() - start:.2f} s): a parity of {len(support)} features;"
                        f" chance explains as many labels with probability {found.chance:.1g} at most"]
        return found

    def _by_method(
        self, votes: Votes, generator: np.random.Generator, until: Until
    ) -> tuple[Sequence[int], str, float]:
        """A support, why it may be another one, and the logarithm of how many were searched."""
        n = votes.x.shape[1]
        if self.method == "gaussian-elimination":
            return *_eliminate(votes.x, votes.labels, generator, until), n * math.log(2)
        largest = min(_default(self.k, 4 if self.method == "meet-in-the-middle" else 3), n)
        log_supports = math.log(sum(math.comb(n, size) for size in range(largest + 1)))
        if self.method == "meet-in-the-middle":
            require(largest <= 4, f"meet-in-the-middle finds supports of up to 4 features, not {self.k}")
            found = few(votes.x, votes.labels, generator, largest, until)
            doubt = "" if found.alone else "another one of its size explains all labels too"
            return found.support, "none explains all labels" if found.alone is None else doubt, log_supports
        if self.method == "sgd":
            from paritylab.baselines.sgd import support_of_data, with_options

            learner = with_options(self.lr, self.width, self.batch, self.weight_decay)
            signs, labels = (1 - 2 * values.astype(np.int8) for values in votes.units())
            support = support_of_data(signs, labels, largest, generator, learner, self.steps) if n else []
            return support, "" if support else "no Fourier coefficient of the network is large", log_supports
        return *self._best(votes, largest, until), log_supports

    def _best(self, votes: Votes, largest: int, until: Until) -> tuple[Sequence[int], str]:
        """The support of fewest errors, by trying all."""
        packed = Packed.of(*votes.units())
        exactly = self.method == "exhaustive" and self.k is not None
        require(not exactly or largest == self.k,
                f"no support has {self.k} members: only {packed.features} features vary"
                f" (n_samples={len(votes.x)}, n_features={self.n_features_in_})")
        sizes = [largest] if exactly else range(largest + 1)
        number = sum(math.comb(packed.features, size) for size in sizes)
        seconds = sum(supports.seconds_for_all(packed, size, packed.words, until.threads) for size in sizes if size)
        require(seconds <= self.time_budget,
                f"{number:.2g} supports are too many, they would take about {duration(seconds)};"
                f" lower k or raise time_budget={self.time_budget}")
        ones = int(votes.units()[1].sum())
        found: list[tuple[int, int, Sequence[int]]] = [(min(ones, packed.rows - ones), 1, ())] if 0 in sizes else []
        for size in sizes:
            if size > 0:
                best = supports.enumerate_all(packed, size, until._replace(end=math.inf))
                found.append((best.errors, best.number, best.supports[0][0]))
        fewest = min(errors for errors, _, _ in found)
        ties = sum(many for errors, many, _ in found if errors == fewest)
        support = next(support for errors, _, support in found if errors == fewest)
        return support, "" if ties == 1 else "another one explains as many labels"


def _default(k: Any, size: int) -> int:
    return size if k is None else int(k)


def _eliminate(x: Bits, y: Bits, generator: np.random.Generator, until: Until) -> tuple[Sequence[int], str]:
    n = x.shape[1]
    # The last column, a constant, lets the parity be negated.
    columns = np.column_stack([x, np.ones(len(x), bool)])
    solution = gf2.solve(columns, y)
    rows = f"rank {solution.rank} of {n + 1}"
    if solution.support is None:
        solution = gf2.pooled(columns, y, generator, 1.0, TRIALS)
        doubt = rows if solution.rank <= n else ""
    elif solution.rank > n:
        doubt = ""
    else:
        return _sparsest(x, y, generator, rows, until)
    return [j for j in solution.support or [] if j < n], doubt


def _sparsest(x: Bits, y: Bits, generator: np.random.Generator, rows: str, until: Until) -> tuple[Sequence[int], str]:
    """The sparsest of the parities that explain all labels, as far as it can be found."""
    support, least, alone = sparsest(x, y, generator, until)
    size = f"{len(support)} feature" + "s" * (len(support) != 1)
    if alone is None:
        known = f"this one has {size}, a sparser one (of {least} at least) may explain the labels as well"
    else:
        known = f"this one, of {size}, is the sparsest and {'' if alone else 'not '}the only one of its size"
    return support, f"{rows}; {known}"
