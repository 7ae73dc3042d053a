"""Timings to what is printed: the table, and the bars paritylab sets itself."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LOOP_BARS = {"W1": 600, "W3": 3000, "W2": 70, "W4": 1.7}  # lanes on one core, times the PyTorch loop
LEAST_BARS = {"W1": 0.4, "W2": 0.55}  # lanes on one core, share of what the least operations would take
THREADS_BAR = 1.6  # lanes on two cores, times lanes on one


class Key(NamedTuple):
    workload: str
    threads: int
    engine: str
    slots: int | None


@dataclass
class Timings:
    """For every case its results, one for each round."""

    cases: dict[Key, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, engine: str, threads: int, results: Iterable[dict[str, Any]]) -> None:
        for result in results:
            self.cases[Key(result["workload"], threads, engine, result["slots"])].append(result)

    def values(self, workload: str, threads: int, engine: str, name: str = "rate") -> list[float]:
        """One value a round; of several numbers of slots, the fastest's."""
        found = [rounds for key, rounds in self.cases.items() if key[:3] == (workload, threads, engine)]
        best = max(found, key=lambda rounds: statistics.median(r["rate"] for r in rounds), default=[])
        return [r[name] for r in best if r[name] is not None]

    def ratio(self, of: tuple[str, int, str], to: tuple[str, int, str]) -> float | None:
        """The median over rounds of one rate divided by another of the same round."""
        return median(a / b for a, b in zip(self.values(*of), self.values(*to), strict=False))

    def to_list(self) -> list[dict[str, Any]]:
        return [
            {**key._asdict(), **{name: [r[name] for r in rounds] for name in ("rate", "used", "of_peak", "of_least")}}
            for key, rounds in self.cases.items()
        ]


def median(values: Iterable[float]) -> float | None:
    listed = list(values)
    return statistics.median(listed) if listed else None


def shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def lines(timings: Timings, device: str) -> Iterator[str]:
    """The table: a line for each workload, number of cores, engine and number of slots."""
    where = "GPU" if device == "gpu" else "core(s)"
    yield (f"{'':4} {where:>7}  {'engine':14} {'models':>7} {'model-steps/s':>14} "
           f"{'x loop':>9} {'of peak':>8} {'of least':>8} {'spread':>7} {'used':>5}")
    previous = ""
    for key in sorted(timings.cases, key=lambda key: (key.workload, key.threads)):
        if key.workload == "converged":
            continue
        rounds = timings.cases[key]
        rates = [r["rate"] for r in rounds]
        rate = statistics.median(rates)
        loop = timings.values(key.workload, key.threads, "torch-loop")
        ratio = median(a / b for a, b in zip(rates, loop, strict=False))
        share, least = (median(r[name] for r in rounds if r[name] is not None) for name in ("of_peak", "of_least"))
        spread = (max(rates) - min(rates)) / rate
        used = statistics.median(r["used"] for r in rounds)
        if previous not in ("", key.workload):
            yield ""
        previous = key.workload
        yield (f"{key.workload:4} {key.threads:7}  {key.engine:14} {key.slots:7} {rate:14.3g} "
               f"{shown(ratio, ',.4g'):>9} {shown(share, '.1%'):>8} {shown(least, '.1%'):>8} {spread:7.0%}"
               f" {used:5.2f}")
    yield ""
    yield "x loop: against the PyTorch loop on as many cores. of peak: of the FMA peak measured just before and after,"
    yield "counting training only (4 n r B operations a step for two layers); above 100 % most of them are not made."
    yield "of least: what the fewest operations of the best known algorithm would take, of the time taken."
    yield "spread: (max - min) / median over rounds."
    yield "used: cores' worth of CPU time the engine got; less than its cores means that others worked on them."
    for key, rounds in timings.cases.items():
        if key.workload == "converged":
            rate = statistics.median(r["rate"] for r in rounds)
            yield (f"W1 trained to convergence (lr 1, {key.slots:,} inputs at each check), {key.engine},"
                   f" {key.threads} {where}: {rate:,.0f} runs/s")


def bars(timings: Timings) -> Iterator[str]:
    """A line for each bar: reached, missed or not measured."""
    for workload, bar in LOOP_BARS.items():
        value = timings.ratio((workload, 1, "lanes"), (workload, 1, "torch-loop"))
        yield verdict(f"{workload}: lanes, one core, times the PyTorch loop", value, bar, ",.4g")
    for workload, bar in LEAST_BARS.items():
        value = median(timings.values(workload, 1, "lanes", "of_least"))
        yield verdict(f"{workload}: lanes, one core, share of the least operations", value, bar, ".1%")
    for workload in LOOP_BARS:
        value = timings.ratio((workload, 2, "lanes"), (workload, 1, "lanes"))
        yield verdict(f"{workload}: lanes, two threads, times one", value, THREADS_BAR, ".2f")


def verdict(what: str, value: float | None, bar: float, form: str) -> str:
    word = "not measured" if value is None else "reached" if value >= bar else "missed"
    return f"bar  {what}: {shown(value, form)} (at least {format(bar, form)}): {word}"
