"""Whole command lines, made from the parsers themselves: sensible, degenerate and hostile."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from faults.strategies import ACTIVATIONS, INITS, LOSSES, ODD_SPECS, SCHEDULES
from hypothesis import strategies as st

from paritylab.claims import papers
from paritylab.cli import build_parser

# Enough to make a command small; what is drawn comes after and wins.
SMALL = {
    "theory alignment": "--d 5 --draws 10",
    "theory learners": "--n 6 --k 2 --runs 2 --limit 200 --learners gaussian-elimination,low-degree",
    "compare": "--against=--width=4 --n 6 --k 2 --max-steps 20 --eval-size 64 --batch 8 --runs 3",
    "curves": "--n 6 --k 2 --steps 20 --eval-size 64 --batch 8",
    "demo": "--runs 10",
    "theory fourier": "--n 6 --k 2 --draws 10",
    "measure": "--n 6 --k 2 --max-steps 20 --eval-size 64 --batch 8 --runs 3",
    "store merge": "kept",
    "reproduce": "--quick me2025.guessing",
    "results": "--out kept",
    "theory search": "--n 10 --k 3",
    "serve": "--port 0",
}
LONG = ["theory learners", "compare", "curves", "demo", "reproduce", "report", "serve"]
"""Commands that take seconds however they are called; drawn less often."""
NEVER = ("record", "workers", "scheduler", "slurm", "dry_run")
"""Options that write into the package or start processes elsewhere; ``CREWS`` is what is tried of these."""
CREWS = [
    *(["--slurm", text, "--dry-run"] for text in (
        "partition=cpu,cores=2,jobs=2", "cores=x", "cores=0", "cores=-1", "gpus=1,memory=\U0001f4a5", "memory=x",
        "walltime=", "=", "nope=1", "", "nowhere.toml", "broken/jobs.toml")),
    *(["--workers", text] for text in ("0", "-1", "1025", "1e18", "x", "")),
    ["--dry-run"], ["--workers", "0", "--scheduler", "x"], ["--scheduler", "nonsense://x"],
]

NUMERALS = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "10", "12", "16", "31", "33", "64", "100"]
ODD_NUMERALS = [
    "0", "-1", "-7", "1e3", "1_000", "0.5e1", "2147483647", "2147483648", "4294967296", "1e9", "1e18", "1e30", "1e308",
    "1e400", "1.5", "nan", "inf", "-inf", "-1e9", "", " ", "x", "0x10", "1e", "--", "\u0663", " 3 ", "3\n",
    "\U0001f4a5", "9" * 400, "_", "1__0",
]
REALS = ["0", "0.01", "0.1", "0.25", "0.5", "0.9", "1", "2", "10"]
ODD_REALS = [
    "-1", "-0.0", "1e-9", "5e-324", "1e-300", "100", "1e9", "1e38", "1e39", "1e300", "1e400", "nan", "inf", "-inf", "",
    "x", "0,5", "1e", "--", "\u0663", "\U0001f4a5",
]
ODD_NAMES = [
    "", " ", "x", "-", "--", "auto ", "a\nb", "\u00e9\U0001f4a5", "z" * 3000, "../..", "%s", "caf\udce9", "nan", "0",
    "-1", "1,2", ",", "sgd,,", ":",
]
PATHS = ["out", "out", "out", "a/b/c", "kept", "kept"]
ODD_PATHS = ["broken", "file", "file/below", "", ".", "sp ace", "\u00e9\U0001f4a5", "caf\udce9", "-", "x" * 300,
             "/proc/nowhere/out", "../beside", "--"]
CLAIMS = ["me2025.width", "me2025.guessing", *(f"{paper}.*" for paper in papers()), "*", "[", "me2025.wdith", "",
          "\U0001f4a5"]
SETTINGS = [f"{paper.id}:{name}" for paper in papers().values() if (part := paper.part("settings"))
            for name in part.NAMES]
NAMED: dict[str, Any] = {
    "activation": ACTIVATIONS,
    "bias": st.sampled_from([*REALS, "same", "gaussian:0.7", "gaussian:-1", "gaussian:"]),
    "claims": st.sampled_from(CLAIMS),
    "decay_form": st.sampled_from(["coupled", "plain"]),
    "engine": st.sampled_from(["auto", "auto", "lanes", "lanes", "jax", "warps", "lane"]),
    "init": st.one_of(INITS, st.sampled_from(["ones", "sign", "gaussian"])),
    "learners": st.sampled_from(["sgd", "ntk", "low-degree", "gaussian-elimination", "exhaustive", "random-search",
                                 "goldreich-levin", "sgd,ntk", "pooled-elimination", "random-features", "low-degree,"]),
    "loss": LOSSES,
    "method": st.sampled_from(["integral", "lattice", "pairs", "enumerate", "monte-carlo"]),
    "network": st.sampled_from(["mlp", "neuron", "polynet", "disjoint-polynet", "transformer"]),
    "optimiser": st.sampled_from(["sgd", "adam", "sign-sgd"]),
    "paper": st.sampled_from([*papers(), "me2026"]),
    "q": st.sampled_from([*NUMERALS, "inf"]),
    "scale": st.sampled_from([*REALS, "fan-in", "hidden,output", "1,2", "1,fan-in"]),
    "schedule": SCHEDULES,
    "setting": st.sampled_from([*SETTINGS, "me2025:", "me2025", "x:i"]),
    "setup": st.sampled_from(["", "0", "f", "zz"]),
    "show": st.sampled_from(["show", "show", *CLAIMS]),
    "unit": st.sampled_from(["threshold", "relu", "network", "hinge-neuron", "sinusoid", "sinusoid:3,0.5"]),
}


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command, by name."""
    return dict(build_parser().parsers)


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options that may be tried."""
    return [action for action in parser._actions if action.option_strings and action.dest not in (*NEVER, "help")]


def pools(action: argparse.Action) -> tuple[list[str], list[str]]:
    """Fitting and odd values of an option."""
    kind = getattr(action.type, "__name__", "")
    return {"float": (REALS, ODD_REALS), "Path": (PATHS, ODD_PATHS), "": (ODD_NAMES, ODD_NAMES + ODD_SPECS)}.get(
        kind, (NUMERALS, ODD_NUMERALS))


def single_faults() -> Iterator[list[str]]:
    """Every option of every command with every odd value, in a line that is otherwise small and right."""
    for name, parser in parsers().items():
        line = [*name.split(), *SMALL.get(name, "").split()]
        for action in options(parser):
            if action.nargs != 0:
                yield from ([*line, f"{action.option_strings[0]}={value}"] for value in pools(action)[1])
        if any(action.dest == "slurm" for action in parser._actions):
            yield from ([*line, *words] for words in CREWS)


def values(action: argparse.Action) -> Any:
    """A strategy for one value of an option."""
    fitting, odd = pools(action)
    usual = NAMED.get(action.dest, st.sampled_from(fitting))
    return st.integers(0, 9).flatmap(lambda lot: st.sampled_from(odd) if lot == 9 else usual)


@st.composite
def given_option(draw: Any, action: argparse.Action) -> list[str]:
    """An option as words, without a value at times."""
    option = draw(st.sampled_from(list(action.option_strings)))
    if action.nargs == 0:
        return [option]
    words = draw(st.lists(values(action), min_size=1, max_size=3 if action.nargs == "+" else 1))
    lot = draw(st.integers(0, 39))
    if lot == 39:
        return [option]
    return [f"{option}={words[0]}"] if lot > 32 else [option, *words]


@st.composite
def command_lines(draw: Any) -> list[str]:
    """A command and its arguments."""
    known = parsers()
    name = draw(st.sampled_from([name for name in known for _ in range(1 if name in LONG else 6)]))
    line = [*name.split(), *(SMALL.get(name, "").split() if draw(st.integers(0, 9)) != 9 else [])]
    for action in known[name]._actions:
        if not action.option_strings:
            line += draw(st.lists(values(action), min_size=draw(st.sampled_from([1, 1, 1, 0])), max_size=2))
    for action in draw(st.lists(st.sampled_from(options(known[name])), max_size=4)):
        line += draw(given_option(action))
    if any(action.dest == "slurm" for action in known[name]._actions) and draw(st.integers(0, 9)) == 9:
        line += draw(st.sampled_from(CREWS))
    if draw(st.integers(0, 29)) == 29:
        words = ["--widht", "--help", "--version", "-h", "--json=1", "--out", "--recor", "@file", "--", "-1"]
        line.insert(draw(st.integers(0, len(line))), draw(st.sampled_from(ODD_NAMES + words)))
    return line
