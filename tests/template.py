"""The template paper, and a copy of it that brings whatever else a paper may bring."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paritylab.claims import papers
from paritylab.engines import lanes
from paritylab.places import VARIABLE
from paritylab.site import play, watch

EXAMPLE = Path(__file__).parents[1] / "examples" / "me2025"
SOURCE = EXAMPLE / "src" / "me2025"

SETTINGS = '''"""Learners by name."""

from paritylab import MLP, SGD, Adam, Learner
from paritylab.errors import unknown

NAMES = ("powers", "quick")


def learner(setting, k, lr=0.1, batch=32):
    if setting not in NAMES:
        raise unknown("setting", setting, NAMES)
    network, optimiser = (MLP(10, f"power:{k}"), SGD(lr)) if setting == "powers" else (MLP(20), Adam(lr))
    return Learner(network, optimiser=optimiser, batch=batch)
'''
COMMAND = '''"""``paritylab guess``: how many guesses random searches take."""

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import add_common, add_seed, count, print_json


def add(commands):
    parser = commands.add_parser("guess", help="guess supports", description="Guess supports in random order.")
    parser.add_argument("--n", type=count, default=8)
    parser.add_argument("--searches", type=count, default=20)
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def run(options):
    from me2025.guessing import guesses

    from paritylab.claims import Lab

    if shows_script(options):
        return
    with hired(options):
        lab = Lab("quick", options.out, seed=options.seed, progress=False)
        found = lab.compute(guesses, n=options.n, k=3, searches=options.searches)["guesses"]
    if options.json:
        print_json({"guesses": found.tolist()})
    else:
        print(f"{found.mean():g} guesses")
'''
RUNS = '''"""What this paper brings to {page!r}."""

from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup
from paritylab.site.{module} import {kind}


def setups(widths):
    learner = {{width: Learner(MLP(width), optimiser=SGD(1.0)) for width in widths}}
    return {{f"width {{width}}": Setup(Parity({n}), learner[width], Protocol(5000, 10, 128)) for width in widths}}


'''
RECORDINGS = RUNS.format(page="Watch it learn", module="watch", kind="Recording", n="8, 2") + '''RECORDINGS = (
    Recording("narrow", "A narrow network", "Its weights move.",
              "paritylab curves --n 8 --k 2 --lr 1 --width 10 --steps 200", lambda: setups([10]), range(0, 201, 10)),
    Recording("both", "Two networks", "One is wide.",
              "paritylab curves --n 8 --k 2 --lr 1 --width 10 --steps 200", lambda: setups([10, 30]),
              range(0, 201, 10)),
)
'''
EXPERIMENTS = RUNS.format(page="Play", module="play", kind="Experiment", n="30, 3") + '''EXPERIMENTS = (
    Experiment("widths", "Width", "Do wider networks learn sooner?", "me2025.width", lambda: setups([10, 30])),
)
'''
SITE = '''"""A page of the paper's own."""

PAGES = {"guesses.html": ("Guesses", "How many guesses it takes.")}


def add(site, cards):
    site.data("guesses", {"ids": sorted(cards)})
    site.page("guesses.html", "guesses", "Guesses", card=cards["me2025.guessing"])
'''
PAGE = '''{% extends "base.html" %}
{% block main %}<h1>Guesses</h1><p id="told">{{ card.claim.title }}</p>{% endblock %}
{% block scripts %}<script src="data/guesses.js"></script><script src="assets/guesses.js"></script>{% endblock %}
'''
SCRIPT = 'document.getElementById("told").textContent += ` (${window.paritylab.guesses.ids.length} claims)`;\n'
MORE = {
    "settings.py": SETTINGS,
    "commands/__init__.py": "",
    "commands/guess.py": COMMAND,
    "recordings/__init__.py": RECORDINGS,
    "experiments/__init__.py": EXPERIMENTS,
    "site/__init__.py": SITE,
    "site/guesses.html": PAGE,
    "site/guesses.js": SCRIPT,
    "remarks.toml": '[remarks]\n"me2025.width" = "Not one network of width 10 was faster."\n',
}


def part(module: str) -> Any:
    """A module of the template, which need not be on the path."""
    return papers()["me2025"].place.load(module)


def copied(folder: Path) -> Path:
    """A copy of the template below a folder."""
    return Path(shutil.copytree(SOURCE, folder / "me2025", ignore=shutil.ignore_patterns("__pycache__")))


def with_everything(folder: Path) -> Path:
    """A copy with settings, a command, recorded runs, experiments (where they can be measured), a page and a remark."""
    copy = copied(folder)
    for name, text in MORE.items():
        if lanes.kernel() is not None or not name.startswith("experiments"):
            (copy / name).parent.mkdir(exist_ok=True)
            (copy / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(copy))
        for path, recording in watch.recordings():
            watch.record(recording, path)
        for path, experiment in play.experiments():
            play.measure(experiment, path)
    return copy


def edit(path: Path, change: Any) -> None:
    """Change a JSON document in place."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
