"""What the page "Play" says of a Setup is true: the code it shows, the addresses it takes, the records it writes."""

import json
import shlex
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from test_web_engine import W1, node, random_setup

import paritylab as pl
from paritylab.cli import build_parser, main
from paritylab.cli.measure import make_setup
from paritylab.engines import lanes
from paritylab.errors import InvalidInput
from paritylab.running import downloads
from paritylab.site import content, engine, play

ROOT = Path(__file__).parents[1]


def said(setups):
    lines = "\n".join(setup if isinstance(setup, str) else setup.to_json() for setup in setups)
    command = [node(), str(ROOT / "tests" / "web" / "words.js"), str(engine.FOLDER.parent)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_python_that_is_shown_makes_the_same_setup(monkeypatch):
    asked = []
    monkeypatch.setattr(pl, "measure", lambda *args, **options: asked.append((pl.Setup(*args), options)))
    setups = [W1, *(random_setup(seed) for seed in range(40))]
    for setup, told in zip(setups, said(setups), strict=True):
        exec(told["python"], {})
        assert asked.pop() == (setup, {"runs": 20, "seed": 3, "engine": "lanes"}), told["python"]
        assert told["refused"] is None
        assert told["kept"]


def test_the_command_that_is_shown_asks_for_the_same_setup(whole_paper):
    setups = [
        pl.Setup(
            pl.Parity(8, 2, noise=0.01),
            pl.Learner(pl.MLP((6, 4), "gelu"), "mirrored xavier", "square", pl.Adam(0.01)),
            pl.Protocol(30, 5, 64, 0.9),
        ),
        pl.Setup(pl.Problem(9, "majority:3", "biased:0.75"), pl.Learner(optimiser=pl.SGD(0.5, momentum=0.9))),
        pl.Setup(pl.LeakyParity(9, 3, leak=0.25), pl.Learner(pl.PolyNet(3), optimiser=pl.SGD(0.1))),
        pl.Setup(pl.Parity(9, 3, sample=30), pl.Learner(pl.Neuron("zigzag:3"))),
        *(setup for _, each in play.experiments() for setup in each.setups().values()),
    ]
    shown = 0
    for setup, told in zip(setups, said(setups), strict=True):
        if told["shell"] is None:
            continue
        options = build_parser().parse_args(shlex.split(told["shell"])[1:])
        assert make_setup(options, options.lr[0]) == setup, told["shell"]
        assert (options.runs, options.seed, options.engine) == (20, 3, "lanes")
        shown += 1
    assert shown == len(setups)
    staged = pl.Setup(pl.Problem(9, [0, 1], stages=[pl.Stage(10, noise=0.1)]))
    assert said([staged])[0]["shell"] is None


@pytest.mark.long
def test_every_claim_that_can_be_tried_in_a_browser_can(tmp_path):
    """The page takes what the links of the claims ask for."""
    links = [card.played for card in content.cards(tmp_path) if card.played]
    assert len(links) == 1  # guesses train nothing
    setups = [unquote(link.partition("&setup=")[2]) for link in links]
    assert [told["refused"] for told in said(setups)] == [None] * len(links)


@pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
def test_experiments_have_what_was_measured_of_their_setups(whole_paper):
    for path, experiment in play.experiments():
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert kept["setups"] == {label: setup.id for label, setup in experiment.setups().items()}
        assert all(play.refusal(setup) is None for setup in experiment.setups().values())
    assert len(play.told()) == 1


def document(**changes):
    columns = {
        "run": [3, 1],
        "status": ["solved", "diverged"],
        "t_c": [10, -1],
        "steps": [10, 20],
        "accuracy": [1, 0.5],
        "loss": [0.25, None],
    }
    return {
        "paritylab": "records",
        "format": 1,
        "setup": json.loads(W1.to_json()),
        "engine": "lanes",
        "seed": 5,
        **columns,
        **changes,
    }


def test_records_from_the_page_are_read_and_merged_once(tmp_path, capsys):
    path = tmp_path / "records.json"
    path.write_text(json.dumps(document()))
    setup, kind, seed, records = downloads.read(path)
    assert (setup, kind, seed, records.run.tolist(), records.t_c.tolist()) == (W1, "lanes", 5, [1, 3], [-1, 10])
    for added, known in ((2, 0), (0, 2)):
        main(["store", "merge", str(path), "--out", str(tmp_path / "out"), "--json"])
        told = json.loads(capsys.readouterr().out)
        assert (told["added"], told["known"], told["conflicts"]) == (added, known, [])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 2}, "another format"),
        ({"engine": "warps"}, "of the engine lanes"),
        ({"seed": -1}, "the seed"),
        ({"run": [1]}, "different lengths"),
        ({"run": [1, 1]}, "a run twice"),
        ({"status": ["solved", "lost"]}, "not in tuple"),
        ({"steps": [10, 10**6]}, "more steps"),
        ({"setup": {"conventions": 1}}, "not a Setup|type"),
        ({"loss": None}, "NoneType"),
    ],
)
def test_a_file_that_holds_no_records_is_refused_in_a_line(tmp_path, changes, says):
    path = tmp_path / "records.json"
    path.write_text(json.dumps(document(**changes)))
    with pytest.raises(InvalidInput, match=says) as caught:
        downloads.read(path)
    assert "\n" not in str(caught.value)
    path.write_text("{")
    with pytest.raises(InvalidInput, match="not JSON"):
        downloads.read(path)
