"""``paritylab daniely2020 leaky``: Theorem 2 of daniely2020 in its own regime."""

from __future__ import annotations

import argparse
import math
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require

MOST_UNITS = 10**6
"""The most pairs of units that are drawn and trained one by one; beyond, only the limit is within reach."""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "leaky",
        help="the network of daniely2020's Theorem 2 on leaky parities, at the theorem's own sizes",
        description="One exact population step, then the theorem's schedule in reduced coordinates; nothing of size n"
        " is stored. With --q inf (the default) the limit of many units: the error after the schedule of every q, the q"
        " it needs, and every term of the bound. With a number, so many pairs of units are drawn and both layers are"
        " trained. The error curve is written under --out.",
    )
    parser.add_argument("--k", type=count, default=7, help="size of the support, odd")
    parser.add_argument("--n", type=count, help="number of inputs (k^10)")
    parser.add_argument("--q", type=pairs, default=math.inf, help="pairs of units, or inf")
    parser.add_argument("--steps", type=count, help="T, of a finite q (20 k^2 sqrt(q))")
    parser.add_argument("--leak", type=float, default=0.5, help="probability of equal signs on the support")
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def pairs(text: str) -> float:
    """A number of pairs, or inf."""
    if text.strip().lower() in ("inf", "infinity"):
        return math.inf
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, nor inf") from None


def run(options: argparse.Namespace) -> None:
    from daniely2020.theory.leaky import Leaky

    k = options.k
    require(3 <= k <= 11 and k % 2 == 1, f"--k must be odd and from 3 to 11, not {k}")
    sizes = Leaky(k**10 if options.n is None else options.n, k, options.leak)
    require(sizes.leak > 0, "--leak must be positive: without a leak the first step finds nothing")
    many = options.q == math.inf
    require(many or 1 <= options.q <= MOST_UNITS, f"--q must be from 1 to {MOST_UNITS}, or inf, not {options.q}")
    require(options.steps is None or options.steps >= 1, f"--steps must be at least 1, not {options.steps}")
    require(options.steps is None or not many, "--steps is for a finite --q: the limit does not depend on it")
    if shows_script(options):
        return
    with hired(options):
        found = in_the_limit(sizes) if many else with_units(sizes, options)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"leaky-k{k}-q{options.q}.csv"
    write(path, found["curve"])
    found = {"n": sizes.n, "k": k, "leak": sizes.leak, **found, "file": str(path)}
    if options.json:
        print_json(found)
    else:
        (print_limit if many else print_units)(found)


def good_units(sizes: Any) -> dict[str, float]:
    """The share of good units, Lemma 7's bound on it, and their alpha at the typical number of non-zeros."""
    import numpy as np

    from daniely2020.theory.leaky import Units, balanced_share, first_gradient, share_bound

    half = sizes.k // 2
    typical = Units(np.array([half]), np.array([half]), np.array([round(2 * (sizes.n - sizes.k) / 3)]))
    alpha = float(first_gradient(sizes, typical).relevant[0])
    return {"good_share": balanced_share(sizes.k), "good_share_bound": share_bound(sizes.k), "alpha": alpha}


def in_the_limit(sizes: Any) -> dict[str, Any]:
    import numpy as np

    from daniely2020.theory.leaky.theorem import bound_terms, error_curve, regime
    from paritylab.progress import Bar
    from paritylab.running import crews

    found = regime(sizes)
    last = math.ceil(math.log10(found.needed)) + 1 if math.isfinite(found.needed) else 20
    exponents, made = np.arange(2, last + 0.1, 0.5), {}
    with Bar("schedules", len(exponents)) as bar:
        for place, rows in crews.each(error_curve, [(found, np.array([exponent])) for exponent in exponents]):
            made[place] = rows
            bar.show(len(made))
    curve = [row for place in range(len(exponents)) for row in made[place]]
    q = found.needed
    reached = math.isfinite(q)
    return {"q": "inf", **good_units(sizes), "separator_norm": found.separator, "zero_error_time": found.zero_time,
            "needed_q": q if reached else None,
            "bound_at_needed_q": bound_terms(sizes.n, sizes.k, q, sizes.k**4 * q) if reached else None,
            "measured_at_needed_q": found.proof_terms(q, sizes.k**4 * q) if reached else None, "curve": curve}


def with_units(sizes: Any, options: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from daniely2020.theory.leaky import draw_units, good
    from daniely2020.theory.leaky.flow import descend, reduced
    from daniely2020.theory.leaky.theorem import bound_terms, schedule_rate
    from paritylab.progress import Bar
    from paritylab.running import crews

    q = options.q
    steps = options.steps or math.ceil(20 * sizes.k**2 * math.sqrt(q))
    units, u = draw_units(sizes, q, np.random.default_rng(options.seed))
    rate = schedule_rate(sizes.k, q, steps)
    with Bar("steps", steps) as bar:
        shown = {} if crews.current() else {"show": bar.show}  # the bar of this process is not a worker's
        made = crews.once(descend, sizes, reduced(sizes, units, u), steps, rate, **shown)
    columns = {"step": made.steps, "error": made.error, "uniform_error": made.uniform_error, "loss": made.loss}
    curve = [dict(zip(columns, map(float, row), strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"q": q, "steps": steps, "rate": rate, "seed": options.seed, "good_units": int(good(sizes, units).sum()),
            **good_units(sizes), "best_error": float(made.error.min()),
            "moved": dict(zip("uwb", made.moved, strict=True)), "noise": made.noise,
            "bound": bound_terms(sizes.n, sizes.k, q, steps), "curve": curve}


def print_limit(found: dict[str, Any]) -> None:
    print(f"leaky parity, n = {found['n']}, k = {found['k']}, q -> infinity")
    print(f"good units: share {found['good_share']:.4f} (Lemma 7: at least {found['good_share_bound']:.4f}), alpha"
          f" {found['alpha']:.6f}")
    norm = found["separator_norm"]
    print(f"smallest separator: 2q |u*|^2 = {norm:.4g} = {norm / found['k']**10:.3g} k^10")
    print("after the theorem's schedule: q, error, error on the uniform half, error from this n's own start")
    for row in found["curve"][::2]:
        print(f"  {row['q']:8.1e}  {row['error']:.4f}  {row['uniform_error']:.4f}  {row['error_from_own_start']:.4f}")
    if found["needed_q"] is not None:
        print(f"no error from q = {found['needed_q']:.3g} on, if n is far above q^2 k^2; there, with T = k^4 q:")
        for name, value in found["bound_at_needed_q"].items():
            print(f"  {name:<16} bound {value:9.3g}   in this run {found['measured_at_needed_q'][name]:9.3g}")
    print(f"curve: {found['file']}")


def print_units(found: dict[str, Any]) -> None:
    print(f"leaky parity, n = {found['n']}, k = {found['k']}, {found['q']} pairs of units, {found['good_units']} good")
    print(f"rate {found['rate']:.4g}, {found['steps']} steps: best error {found['best_error']:.4f}, last"
          f" {found['curve'][-1]['error']:.4f}, hinge loss {found['curve'][-1]['loss']:.4f}")
    print(f"moved at most: u {found['moved']['u']:.3g}, w {found['moved']['w']:.3g}, b {found['moved']['b']:.3g}")
    print("terms of the bound: " + ", ".join(f"{name} = {value:.3g}" for name, value in found["bound"].items()))
    print(f"curve: {found['file']}")


def write(path: Any, rows: list[dict[str, Any]]) -> None:
    import csv
    import io

    from paritylab.storage.files import write_atomically

    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())
