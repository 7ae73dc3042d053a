"""``paritylab theory fourier``: Fourier gaps of a neuron's exact population gradient; spectra of Boolean functions."""

from __future__ import annotations

import argparse
import math
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require

QUANTILES = (5, 25, 50, 75, 95)
MOST_WEIGHTS = 10**8
MOST_TERMS = 20
DRAWN_TOGETHER = 1000
FUNCTIONS = ("parity:K, majority:K, mod:M,K, tribes:WIDTH,TRIBES, address:A, staircase:K, leap:K1,K2,...,"
             " random:K[,SEED], table:FILE")
DEFAULTS = {"n": 15, "k": 4, "unit": "relu", "init": "uniform", "bias": 0.0, "draws": 1000}


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "fourier",
        help="Fourier gaps of a neuron's population gradient; the spectrum of a Boolean function",
        description="Draw random weights of one neuron and compute its exact population gradient on a parity: how far"
        " the largest relevant coordinate lies above the largest irrelevant one (Barak et al., Figure 11). The gaps"
        " are written under --out. With --target instead: the parities of a Boolean function, its degree and leap; with"
        " --bias P, those of its expansion where every bit is +1 with probability P.",
    )
    parser.add_argument("--target", help=f"a Boolean function: {FUNCTIONS}")
    parser.add_argument("--n", type=count, help="number of inputs (15 unless said)")
    parser.add_argument("--k", type=count, help="size of the support (4 unless said)")
    parser.add_argument("--unit", help="relu, sinusoid (sin z) or sinusoid:degree[,scale] (relu unless said)")
    parser.add_argument("--init", help="such as uniform (unless said), gaussian, sign, perturbed-rademacher:0.1")
    parser.add_argument("--bias", type=float, help="the neuron's bias (0 unless said); of a --target, the"
                        " probability that a bit is +1 (1/2 unless said)")
    parser.add_argument("--draws", type=count, help="number of weight vectors (1000 unless said)")
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    given = [name for name in DEFAULTS if getattr(options, name) is not None]
    if options.target is not None:
        others = [name for name in given if name != "bias"]
        require(not others, f"--target stands alone, or with --bias; leave out --{' --'.join(others)}")
        return show_target(options)
    for name, value in DEFAULTS.items():
        if name not in given:
            setattr(options, name, value)
    show_gaps(options)


def show_target(options: argparse.Namespace) -> None:
    """The parities of a Boolean function, the largest first, and what they say."""
    from paritylab.cli.problems import read_target
    from paritylab.measures.boolean import named, spectrum

    p = options.bias
    require(p is None or 0 < p < 1, f"the --bias of a target is a probability above 0 and below 1, not {p}")
    of_file = options.target.startswith("table:")
    found = spectrum(read_target(options.target, None).array if of_file else named(options.target), p)
    terms = sorted(found.terms, key=lambda term: (-round(abs(term.coefficient), 12), len(term.support), term.support))
    if options.json:
        print_json({
            "target": options.target, "bias": 0.5 if p is None else p, "bits": found.bits, "degree": found.degree,
            "leap": found.leap, "information_exponent": found.information_exponent, "weights": found.weights.tolist(),
            "terms": [{"support": term.support, "coefficient": term.coefficient} for term in terms],
        })
        return
    products = "parities" if p is None else "products"
    print(f"{options.target}: {found.bits} bits, {len(terms)} {products}, degree {found.degree}, leap {found.leap},"
          f" information exponent {found.information_exponent}")
    if p is not None:
        mean, sign = abs(2 * p - 1), "-" if p >= 0.5 else "+"
        print(f"bits are +1 with probability {p:g}: z = (x {sign} {mean:.6g}) / {2 * math.sqrt(p * (1 - p)):.6g}")
    print("weight by degree: " + ", ".join(f"{size}: {weight:.4g}" for size, weight in enumerate(found.weights)
                                           if weight > 0))
    letter = "x" if p is None else "z"
    for term in terms[:MOST_TERMS]:
        print(f"{term.coefficient:+.6g}  {' '.join(f'{letter}{j}' for j in term.support) or '1'}")
    if len(terms) > MOST_TERMS:
        print(f"... and {len(terms) - MOST_TERMS} more (--json has all)")


def show_gaps(options: argparse.Namespace) -> None:
    from paritylab.storage.files import save_table

    n, k, draws = options.n, options.k, options.draws
    require(1 <= k < n, f"--k must be from 1 to {n - 1}, not {k}")
    require(draws >= 1, f"--draws must be at least 1, not {draws}")
    require(n * draws <= MOST_WEIGHTS, f"--n times --draws must be at most {MOST_WEIGHTS}, not {n} times {draws}")
    if shows_script(options):
        return
    with hired(options):
        gaps, error = draw_gaps(n, k, options.unit, options.init, options.bias, draws, options.seed)
    document = summarise(gaps, error, n, k)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "fourier-gaps.csv"
    save_table(path, gaps, ("gap",))
    settings = {name: getattr(options, name) for name in ("n", "k", "unit", "init", "bias", "draws", "seed")}
    if options.json:
        print_json({**settings, **document, "gaps": str(path)})
        return
    print(f"({n}, {k}) parity, {options.unit} neuron, {options.init} weights, {draws} draws")
    print(f"P(gap > 0) = {shown(document['positive'])}")
    print("gap: " + ", ".join(f"{q} % {value:.4g}" for q, value in zip(QUANTILES, document["quantiles"], strict=True)))
    if document["majority_gap"] is not None:
        print(f"majority gap {document['majority_gap']:.4g}; P(gap >= half of it) = {shown(document['half_majority'])}")
    print(f"gaps: {path}")


def draw_gaps(n: int, k: int, unit: str, init: str, bias: float, draws: int, seed: int) -> tuple[Any, float]:
    """The gap at each of many weight vectors, drawn as a layer with that init has them, and the largest error."""
    import jax
    import numpy as np

    from paritylab.running import crews
    from paritylab.setups import inits

    law = inits.init(init)
    weights = np.asarray(law.sample(jax.random.key(seed), (n, draws)), np.float64).T * law.scale(n, 1)
    parts = [weights[i : i + DRAWN_TOGETHER] for i in range(0, draws, DRAWN_TOGETHER)]
    found = dict(crews.each(gaps_of, [(part, k, unit, bias) for part in parts]))
    gaps, errors = zip(*(found[place] for place in range(len(parts))), strict=True)
    return np.concatenate(gaps), max(errors)


def gaps_of(weights: Any, k: int, unit: str, bias: float) -> tuple[Any, float]:
    """The gaps at some weight vectors, and the largest error."""
    from paritylab.measures.fourier import population_gradient
    from paritylab.measures.gap import largest_gap

    gradient = population_gradient(weights, range(k), bias, unit)
    return largest_gap(gradient.weights, range(k)), float(gradient.error.max())


def summarise(gaps: Any, error: float, n: int, k: int) -> dict[str, Any]:
    """Quantiles and shares of the gap as plain JSON values; what is within the error of 0 is not above 0."""
    import numpy as np

    from paritylab.theory.majority import majority_gap

    majority = majority_gap(n, k) if n % 2 == 1 and k % 2 == 0 else None
    return {
        "positive": told_share(gaps > max(2 * error, 1e-13)),
        "levels": list(QUANTILES),
        "quantiles": np.percentile(gaps, QUANTILES).tolist(),
        "majority_gap": majority,
        # Sign weights have this gap up to rounding; half of it is far from where rounding decides.
        "half_majority": None if majority is None else told_share(gaps >= majority / 2),
        "largest_error": error,
    }


def told_share(flags: Any) -> dict[str, Any]:
    """A share and its 95 % Clopper-Pearson interval.

    >>> told_share([True] * 10)["interval"][1]
    1.0
    """
    from paritylab.claims.intervals import share

    value, interval = share(flags)
    return {"value": value, "interval": list(interval)}


def shown(share: dict[str, Any]) -> str:
    low, high = share["interval"]
    return f"{share['value']:.4g} [{low:.4g}, {high:.4g}]"
