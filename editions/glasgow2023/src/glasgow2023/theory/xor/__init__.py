"""The XOR problem of glasgow2023: its network, the parts of a neuron, margins, growth rates and lower bound.

The paper's label -x1 x2 becomes the parity x1 x2 by the symmetry x1 -> -x1, so the Problem is ``Parity(n=d, k=2)``: the
positive clusters are mu = +-(e1 + e2), the negative ones +-(e1 - e2). Its network f(x) = (1/p) sum_j a_j relu(w_j . x),
trained at rate eta with gradients times p, is ``MLP(p, bias=False)`` with output weights a_j / p, whose layers have the
rates eta p and eta / p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]
import scipy.stats  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import require

if TYPE_CHECKING:
    from paritylab.setups.setup import Learner

special: Any = scipy.special
stats: Any = scipy.stats

CLUSTERS = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
"""The first two coordinates of the four cluster centres mu."""
LABELS = np.array([1.0, 1.0, -1.0, -1.0])
RATE = 1 / math.sqrt(2 * math.pi)
"""tau of phase 1: |w_sig| grows at this rate per unit of time eta t, where |a| = |w_perp| (equation 4.3)."""
GAUSSIAN_RATE = RATE * 2 / math.pi
"""The same for Gaussian inputs with labels sign(x1 x2), where E|x1||x2| = 2/pi takes the place of 1."""
MARGIN_RATE = math.sqrt(2) / 4
"""tau of phase 2: the weakest margin grows at the rate 2 tau g_max (Lemma 4.4)."""


def learner(
    width: int, theta: float = 0.5, eta: float = 0.25, batch: int = 64, frozen: bool = False, share: float = 0.5
) -> Learner:
    """The paper's network and training; ``frozen`` output weights, or a ``share`` of positive ones other than 1/2.

    >>> learner(64).optimiser.rates
    (64.0, 0.015625)
    """
    from paritylab import MLP, SGD, Learner
    from paritylab.setups import inits

    require(width >= 1, f"the width must be at least 1, not {width}")
    optimiser = SGD(eta, rates=(width, 0.0 if frozen else 1 / width))
    return Learner(MLP(width, bias=False), inits.mean_field(theta, share), "logistic:2", optimiser, batch)


def gaussian_inputs(key: Any, count: int, n: int) -> Any:
    """``Parity(d, 2, inputs=gaussian_inputs)``: inputs N(0, I), labels sign(x1 x2) (the paper's open question)."""
    import jax

    return jax.random.normal(key, (count, n))


def rotated(learner: Learner, rotation: ArrayLike) -> Learner:
    """The same learner on the cube in another basis: its network sees ``rotation @ x`` in place of x (Remark 2.1)."""
    from paritylab import Network

    network, law, turned = learner.network, learner.init, np.asarray(rotation, np.float32)
    make, forward = (lambda key, n: network.init(key, n, law)), (lambda params, x: network.apply(params, x @ turned.T))
    return replace(learner, network=Network(make, forward))


# --- the parts of a neuron --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neurons:
    """First-layer weights w (..., p, d) and output weights a (..., p) of f = (1/p) sum_j a_j relu(w_j . x).

    >>> neurons = Neurons(np.array([[3.0, 1.0, 2.0]]), np.array([1.0]))
    >>> [float(part[0].round(3)) for part in (neurons.sig, neurons.opp, neurons.perp)]
    [2.828, 1.414, 2.0]
    """

    w: Floats
    a: Floats

    @staticmethod
    def of(params: Any) -> Neurons:
        """From the params of an ``MLP(p, bias=False)``, with any leading axes."""
        w = np.swapaxes(np.asarray(params[0]["w"]), -1, -2)
        return Neurons(w, w.shape[-2] * np.asarray(params[1]["w"])[..., 0])

    def _along(self, sign: Floats) -> Floats:
        return (self.w[..., 0] + sign * self.w[..., 1]) / math.sqrt(2)

    @property
    def sig(self) -> Floats:
        """w along the unit vector of the clusters whose label is the sign of a; |sig| = |w_sig|."""
        return self._along(np.where(self.a > 0, 1.0, -1.0))

    @property
    def opp(self) -> Floats:
        """w along the unit vector of the other two clusters; |opp| = |w_opp|."""
        return self._along(np.where(self.a > 0, -1.0, 1.0))

    @property
    def perp(self) -> Floats:
        """|w_perp|."""
        return np.linalg.norm(self.w[..., 2:], axis=-1)

    @property
    def size(self) -> Floats:
        """|w|."""
        return np.linalg.norm(self.w, axis=-1)

    def __call__(self, x: Floats) -> Floats:
        """The network's output."""
        return np.mean(self.a[..., None, :] * np.maximum(x @ np.swapaxes(self.w, -1, -2), 0), axis=-1)


def margins(neurons: Neurons) -> Floats:
    """gamma_mu = y(mu) f(mu) of the four clusters, in the order of CLUSTERS: (..., 4)."""
    z = neurons.w[..., :2] @ CLUSTERS.T
    return LABELS * np.mean(neurons.a[..., None] * np.maximum(z, 0), axis=-2)


def slope(margin: ArrayLike) -> Floats:
    """g = |l'| at a margin: 2 / (1 + exp(margin)).

    >>> float(slope(0.0))
    1.0
    """
    return 2 * special.expit(-np.asarray(margin, np.float64))


def step(neurons: Neurons, x: Floats, y: Floats, eta: float, frozen: bool = False) -> Neurons:
    """One update on a batch, in the precision of the neurons."""
    z = x @ neurons.w.T
    pull = (y * slope(y * np.mean(neurons.a * np.maximum(z, 0), axis=-1)))[:, None] * (z > 0) / len(y)
    w = neurons.w + eta * neurons.a[:, None] * (pull.T @ x)
    return Neurons(w, neurons.a if frozen else neurons.a + eta * np.sum(pull * z, axis=0))


# --- signal-heavy networks (Definition 4.2) ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Heaviness:
    """The smallest zeta for which a network is (zeta, H)-signal-heavy, with the largest heavy set S of that zeta."""

    zeta: float
    outside: float
    """E 1(w not in S) |w|^2."""
    margin: float
    """The smallest margin that S alone gives."""
    members: NDArray[np.bool_]
    """Which neurons are in S."""


def heaviness(neurons: Neurons, strict: bool = True) -> Heaviness:
    """How signal-heavy a network is, with H = max(1, E|w|^2 / 2); not ``strict``: exp(6H) is replaced by 1.

    S may hold any neurons with exp(6H) |w_perp| + |w_opp| <= zeta |w_sig|; more of them only help, so the best sets are
    the first ones in the order of that ratio.
    """
    squares, p = neurons.size.astype(np.float64) ** 2, len(neurons.a)
    height = max(1.0, float(squares.mean()) / 2)
    factor = math.exp(min(6 * height, 700.0)) if strict else 1.0
    with np.errstate(divide="ignore"):
        ratio = (factor * neurons.perp + np.abs(neurons.opp)) / np.abs(neurons.sig)
    order = np.argsort(ratio, kind="stable")
    outside = (squares.sum() - np.cumsum(squares[order])).clip(0) / p
    margin = np.cumsum(_gains(neurons)[order], axis=0).min(axis=1) / p
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.maximum(ratio[order], np.where(margin > 0, outside / margin, np.inf))
    unbalanced = max(0.0, float(squares.mean() - np.mean(neurons.a.astype(np.float64) ** 2))) / height
    zeta = max(float(needed.min()), unbalanced)
    last = max(int(np.searchsorted(ratio[order], zeta, side="right")) - 1, 0)
    return Heaviness(zeta, float(outside[last]), float(margin[last]), ratio <= zeta)


def light_share(neurons: Neurons, members: NDArray[np.bool_]) -> float:
    """The mass E 1(w not in S) |w|^2 outside a set S over the smallest margin that S alone gives."""
    outside = np.mean(neurons.size.astype(np.float64) ** 2 * ~members)
    return float(outside / np.mean(_gains(neurons) * members[:, None], axis=0).min())


def _gains(neurons: Neurons) -> Floats:
    """What each neuron adds to each margin along its w_sig: |a| relu(w_sig . mu), (p, 4).

    The mu with y(mu) a > 0 have w_sig . mu = w . mu, for the others w_sig . mu = 0.
    """
    return np.maximum(neurons.a[:, None] * LABELS, 0) * np.maximum(neurons.w[:, :2] @ CLUSTERS.T, 0)


# --- growth rates and the lower bound ---------------------------------------------------------------------------------


def correction(sig: ArrayLike, perp: ArrayLike) -> Floats:
    """How much slower |w_sig| grows than equation 4.3 says, which takes it as small: erf(r/sqrt 2) / (r sqrt(2/pi)).

    r = |w . mu| / |w_perp| = sqrt(2) |w_sig| / |w_perp|. It is Lemma C.4's rate with w . xi Gaussian, over its limit.

    >>> correction([0.0, 1.0], 1.0).round(4)
    array([1.    , 0.7468])
    """
    r = np.maximum(math.sqrt(2) * np.abs(sig) / np.asarray(perp, np.float64), 1e-9)
    return special.erf(r / math.sqrt(2)) / (r * math.sqrt(2 / math.pi))


def growth(a: ArrayLike, perp: ArrayLike, sig: ArrayLike = 0.0) -> Floats:
    """The rate of ln |w_sig| per unit of time eta t in phase 1: |a| / (|w_perp| sqrt(2 pi)), times the correction.

    ln |w_opp| shrinks at the same rate, with w_opp in place of w_sig.

    >>> float(growth(0.1, 0.1).round(4))
    0.3989
    """
    return RATE * np.abs(a) / np.asarray(perp, np.float64) * correction(sig, perp)


def widening(time: ArrayLike, kappa: float) -> Floats:
    """|w_perp(t)| / |w_perp(0)| in phase 1, widened by minibatch noise: sqrt(1 + t / (2 kappa)), kappa = m / (eta d).

    Every step adds to w_perp noise of squared size about eta^2 a^2 d / (2 m).

    >>> float(widening(8.0, 1.0).round(4))
    2.2361
    """
    require(kappa > 0, f"kappa must be positive, not {kappa:g}")
    return np.sqrt(1 + np.asarray(time, np.float64) / (2 * kappa))


ROTATION_ERROR = 0.03
"""What Proposition F.1 says a rotation-invariant learner errs by at least, with fewer than d / log(d)^2 samples."""


def rotation_samples(d: int) -> int:
    """floor(d / log(d)^2).

    >>> [rotation_samples(d) for d in (64, 256, 1024)]
    [3, 8, 21]
    """
    require(d >= 3, f"d must be at least 3, not {d}")
    return math.floor(d / math.log(d) ** 2)


def rotation_bound(d: int, samples: int) -> float:
    """Proposition F.1's proof with its constants worked out: a bound on a rotation-invariant learner's error, at any d.

    Inputs with the same products with the n samples, of which there are at most (d+1)^n classes, cannot be told apart.
    A class of more than 10 2^d P(Bin(3d/4, 1/2) >= 0.8 (3d/4)) members (Claim F.2) costs an error of 0.25 x 0.15.

    >>> [round(rotation_bound(d, 8), 4) for d in (256, 512)]
    [0.0, 0.0375]
    """
    pairs = math.ceil(0.75 * d)
    tail = float(stats.binom.logsf(math.ceil(0.8 * pairs) - 1, pairs, 0.5))
    small = math.log(10) + samples * math.log(d + 1) + tail
    return 0.25 * 0.15 * max(0.0, 1 - math.exp(min(small, 0.0)))
