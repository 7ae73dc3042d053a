"""A scikit-learn classifier for those who suspect a hidden parity in their data."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from paritylab.baselines import elimination, gf2, low_degree
from paritylab.baselines.search import Found, exhaustive
from paritylab.baselines.sparsest import sparsest
from paritylab.errors import InvalidInput, require, unknown

METHODS = ("gaussian-elimination", "low-degree", "exhaustive", "sgd")
MOST_SUPPORTS = 10**8
TRIALS = 64
"""Random subsets that elimination tries on labels that no parity explains."""


CHANCE = "as chance might: they are most likely not a parity of these features"
NOISE = "more than chance: they are noisy, or more than one parity (baselines.terms looks for several)"


class NoParity(UserWarning):
    """No parity explains all labels: they are noisy, or not a parity. It says whether chance would explain as many."""


class Undetermined(UserWarning):
    """The rows do not tell the parity that was found from others."""


class ParityClassifier(ClassifierMixin, BaseEstimator):
    """Label = the parity of a hidden subset of the features, or its opposite.

    Each feature becomes a bit: whether it lies above the midpoint of its smallest and largest training value. That is
    exact for features of two values (-1/+1, 0/1, any two numbers) and a choice for others, which ``binarise=False``
    refuses instead. A feature that is constant in training is never part of the support.

    It finds one parity and nothing else: no sums of several, no majorities. Where none explains all labels, the best
    one found is kept and a :class:`NoParity` warning says how many labels it explains, and whether one of so many
    parities would by chance: then the labels are most likely not a parity of these features.
    :func:`paritylab.baselines.terms` looks for several parities with coefficients.

    Rows have no weights (there is no ``sample_weight``): a parity explains a label or does not, however much the label
    weighs, and elimination asks that it explains all. Leave out the rows that should not count.

    Args:
        k: size of the support for ``exhaustive``, the largest size for ``low-degree`` and ``sgd``; None tries sizes up
            to 3. ``gaussian-elimination`` finds a support of any size and does not need it.
        method: ``gaussian-elimination`` (about as many rows as features, no noise; where labels contradict one another
            it takes the best of 64 random subsets and warns; where rows are too few it looks for the sparsest of the
            parities that explain them, and warns), ``low-degree`` or ``exhaustive`` (few rows and noisy labels, time
            n^k), or ``sgd`` (a network, whose large Fourier coefficients give the support).
        binarise: whether features of more than two values are cut at the midpoint.
        random_state: of the subsets, and of ``sgd``.

    Attributes:
        support_: positions of the features in the parity, increasing.
        negated_: whether labels are the opposite of the parity of bits (0 for ``classes_[0]``, 1 for ``classes_[1]``).
        classes_: the two labels.
        consistent_: whether the parity explains every training label.
        determined_: whether no other parity of those tried explains the labels as well (``sgd``: whether a network has
            a large coefficient at all). Where it is False, a warning says what is known.
        n_features_in_: number of features.

    >>> x = np.random.default_rng(0).integers(0, 2, (60, 40))
    >>> model = ParityClassifier().fit(x, x[:, [3, 8, 21]].sum(axis=1) % 2)
    >>> model.support_.tolist(), model.score(x, x[:, [3, 8, 21]].sum(axis=1) % 2)
    ([3, 8, 21], 1.0)
    """

    n_features_in_: int

    def __init__(
        self,
        k: int | None = None,
        method: str = "gaussian-elimination",
        binarise: bool = True,
        random_state: Any = None,
    ) -> None:
        self.k = k
        self.method = method
        self.binarise = binarise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ParityClassifier:
        """Find the parity."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if self.method not in METHODS:
            raise unknown("method", str(self.method), METHODS)
        n = X.shape[1]
        self._check_k(n)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._cuts = self._midpoints(X)
        bits = self._bits(X)
        generator = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        varying = np.flatnonzero(bits.any(axis=0) & ~bits.all(axis=0))
        found = self._search(bits[:, varying], labels.astype(bool), generator)
        self.support_ = np.sort(varying[found.support])
        self.negated_, self.determined_ = found.negated, not found.doubt
        self.consistent_ = bool(np.all(self._parity(bits) == labels))
        if not self.consistent_:
            right = float(np.mean(self._parity(bits) == labels))
            by_chance = may_be_chance(right, len(labels), self._log_supports(len(varying)))
            warnings.warn(f"no parity was found that explains all labels; this one explains {100 * right:.1f} % of"
                          f" them, {CHANCE if by_chance else NOISE}", NoParity, stacklevel=2)
        if found.doubt:
            warnings.warn(f"the data do not determine the parity: {found.doubt}", Undetermined, stacklevel=2)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The parity's labels."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.classes_[self._parity(self._bits(X))]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # on data that are not a parity
        return tags

    def _check_k(self, n: int) -> None:
        if self.k is None:
            return
        require(isinstance(self.k, numbers.Integral) and not isinstance(self.k, bool),
                f"k must be a whole number in 0..{n}, or None, not {self.k!r}")
        bounded = self.method in ("low-degree", "sgd")  # k is the largest size there, whatever n is
        require(self.k >= 0 and (bounded or self.k <= n), f"k must be in 0..{n} (n_features={n}), not {self.k}")

    def _log_supports(self, n: int) -> float:
        """The logarithm of how many supports of n features the method could have named."""
        if self.method == "gaussian-elimination":
            return n * math.log(2)
        return math.log(sum(math.comb(n, size) for size in range(min(3 if self.k is None else self.k, n) + 1)))

    def _midpoints(self, X: np.ndarray) -> np.ndarray:
        low, high = X.min(axis=0), X.max(axis=0)
        if not self.binarise:
            odd = np.flatnonzero(np.any(np.not_equal(X, low) & np.not_equal(X, high), axis=0))
            if len(odd):
                raise InvalidInput(f"feature {odd[0]} has more than two values; binarise=True cuts it at the midpoint")
        middle = low / 2 + high / 2
        return np.where((low <= middle) & (middle < high), middle, low)  # between neighbours it rounds to one of them

    def _bits(self, X: np.ndarray) -> np.ndarray:
        return np.greater(X, self._cuts)

    def _parity(self, bits: np.ndarray) -> np.ndarray:
        """Positions of labels in ``classes_``."""
        return (bits[:, self.support_].sum(axis=1) + self.negated_) % 2 % len(self.classes_)

    def _search(self, x: np.ndarray, y: np.ndarray, generator: Any) -> _Parity:
        """The parity of bits x, none of whose columns is constant, that explains the bits y best."""
        if self.method == "gaussian-elimination":
            return _eliminate(x, y, generator)
        signs, labels = 1 - 2 * x.astype(np.int8), 1 - 2 * y.astype(np.int8)
        if self.method == "sgd":
            from paritylab.baselines.sgd import support_of_data

            most = min(3 if self.k is None else self.k, x.shape[1])
            support = support_of_data(signs, labels, most, generator) if x.shape[1] else []
            doubt = "" if support else "no Fourier coefficient of the network is large"
        else:
            support, *sizes = self._best(signs, labels)
            doubt = "" if sizes[0] > sizes[1] else "another one explains as many labels"
        agreement = int((signs[:, support].prod(axis=1) * labels).sum())
        return _Parity(list(support), agreement < 0, doubt)

    def _best(self, signs: np.ndarray, labels: np.ndarray) -> Found:
        n = signs.shape[1]
        exactly = self.method == "exhaustive" and self.k is not None
        require(not exactly or self.k <= n,
                f"no support has {self.k} members: only {n} features vary"
                f" (n_samples={len(signs)}, n_features={self.n_features_in_})")
        largest = min(3 if self.k is None else self.k, n)
        sizes = [largest] if exactly else range(largest + 1)
        supports = sum(math.comb(n, size) for size in sizes)
        require(supports <= MOST_SUPPORTS,
                f"{supports:.2g} supports are too many; allowed: {MOST_SUPPORTS:.0e}; lower k")
        if len(sizes) == 1 and largest > 0:
            return exhaustive(signs, labels, largest, absolute=True)
        return low_degree.largest(signs, labels, largest)


def may_be_chance(share: float, rows: int, log_supports: float) -> bool:
    """Whether one of so many parities, or opposites, explains such a share of random labels with probability above
    5 %, as far as Hoeffding's inequality and a union bound can tell.

    >>> may_be_chance(0.75, 20, math.log(1000)), may_be_chance(0.75, 200, math.log(1000))
    (True, False)
    """
    return log_supports + math.log(2) - 2 * rows * max(0.0, share - 0.5) ** 2 > math.log(0.05)


class _Parity(NamedTuple):
    """A support, whether labels are the opposite, and why it might as well be another one."""

    support: list[int]
    negated: bool
    doubt: str


def _eliminate(x: np.ndarray, y: np.ndarray, generator: Any) -> _Parity:
    n = x.shape[1]
    # The last column, a constant, lets the parity be negated.
    columns = np.column_stack([x, np.ones(len(x), bool)])
    solution = gf2.solve(columns, y)
    rows = f"rank {solution.rank} of {n + 1}"
    if solution.support is None:
        solution = elimination.pooled(columns, y, generator, 1.0, TRIALS)
        doubt = "" if solution.rank == n + 1 else rows
    elif solution.rank == n + 1:
        doubt = ""
    else:
        return _sparsest(x, y, generator, rows)
    found = solution.support or []
    return _Parity([j for j in found if j < n], n in found, doubt)


def _sparsest(x: np.ndarray, y: np.ndarray, generator: Any, rows: str) -> _Parity:
    """The sparsest of the parities that explain all labels, as far as it can be found."""
    support, least, alone = sparsest(x, y, generator)
    size = f"{len(support)} feature" + "s" * (len(support) != 1)
    if alone is None:
        doubt = f"{rows}; this one has {size}, a sparser one (of {least} at least) may explain the labels as well"
    else:
        doubt = f"{rows}; this one, of {size}, is the sparsest and {'' if alone else 'not '}the only one of its size"
    negated = bool((x[0, support].sum() + y[0]) % 2)
    return _Parity(support, negated, doubt)
