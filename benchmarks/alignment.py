"""Our time for eq. (10) of abbe2024 beside that of the triple sum it was computed with, and the whole of its figures.

    python benchmarks/alignment.py [--most 101]

The triple sum runs over the places where two inputs differ and the sums of signs on both sides; each term is a
probability of two correlated normals (Owen's T), in double precision, which is lost at larger d or sigma.
"""

from __future__ import annotations

import argparse
import time
from math import comb

import numpy as np
from scipy.special import ndtr, owens_t

import paritylab as pl

SIGMAS = (0, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


def orthant(a: np.ndarray, b: np.ndarray, rho: float) -> np.ndarray:
    """P(X <= a, Y <= b) for standard normals of correlation rho; a and b are not 0."""
    if rho >= 1:
        return ndtr(np.minimum(a, b))
    if rho <= -1:
        return np.maximum(ndtr(a) + ndtr(b) - 1, 0)
    s = np.sqrt(1 - rho**2)
    apart = np.where(a * b > 0, 0.0, 0.5)
    return (ndtr(a) + ndtr(b)) / 2 - owens_t(a, (b - rho * a) / (a * s)) - owens_t(b, (a - rho * b) / (b * s)) - apart


def triple_sum(d: int, sigma: float) -> float:
    """Eq. (10) for odd d, in O(d^3) terms."""
    root, total = sigma * np.sqrt(d), 0.0
    for m in range(d + 1):
        u, v = d - m - 2 * np.arange(d - m + 1)[:, None], m - 2 * np.arange(m + 1)
        chances = np.outer([comb(d - m, i) for i in range(d - m + 1)], [comb(m, j) for j in range(m + 1)])
        both = orthant((u + v) / root, (u - v) / root, 1 - 2 * m / d)
        total += (-1) ** m * comb(d, m) * float((chances * both).sum())
    return total / 4.0**d


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=101, help="largest d of the triple sum")
    options = parser.parse_args()
    pl.alignment("gaussian", 5)
    for d in (d for d in (5, 11, 21, 25, 51, 101, 201) if d <= options.most):
        start = time.perf_counter()
        theirs = triple_sum(d, 0.1)
        seconds = time.perf_counter() - start
        ours = pl.alignment("perturbed-rademacher:0.1", d)
        print(f"d {d:>3}: triple sum {theirs:.6e} in {seconds * 1e3:8.1f} ms, ours {ours.value:.6e} in"
              f" {ours.seconds * 1e3:6.1f} ms, ratio {seconds / ours.seconds:7.1f}, they differ by"
              f" {abs(theirs / ours.value - 1):.0e}", flush=True)
    start = time.perf_counter()
    sizes = [*range(5, 101, 2), *range(101, 1002, 50)]
    for sigma in SIGMAS:
        for d in sizes:
            pl.alignment(f"perturbed-rademacher:{sigma}", d)
    for d in sizes:
        pl.alignment("gaussian", d)
    count = len(sizes) * (len(SIGMAS) + 1)
    print(f"figures 2 (right) and 6 to d = 1001: {count} values in {time.perf_counter() - start:.1f} s")
    for name in ("gaussian", "perturbed-rademacher:0.001", "perturbed-rademacher:0.1", "rademacher",
                 "discrete:-2,-1,1,2"):
        for unit in ("threshold", "network"):
            found = pl.alignment(name, 10001, unit=unit)
            print(f"d 10001, {name}, {unit}: log {found.log:.6f} in {found.seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
