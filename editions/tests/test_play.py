"""The experiments and links that editions bring to the page "Play"."""

import json
import shlex
from urllib.parse import unquote

import pytest
from test_play import said

from paritylab.cli import build_parser
from paritylab.cli.measure import make_setup
from paritylab.site import content, play


def test_the_command_that_is_shown_asks_for_the_same_setup():
    setups = [setup for _, each in play.experiments() for setup in each.setups().values()]
    shown = 0
    for setup, told in zip(setups, said(setups), strict=True):
        if told["shell"] is not None:
            options = build_parser().parse_args(shlex.split(told["shell"])[1:])
            assert make_setup(options, options.lr[0]) == setup, told["shell"]
            shown += 1
    assert shown == len(setups) - 1  # XOR has rates for each layer, which no option says


@pytest.mark.long
def test_every_claim_that_can_be_tried_in_a_browser_can(tmp_path):
    """The page takes what the links of the claims ask for."""
    links = [card.played for card in content.cards(tmp_path) if card.played]
    assert len(links) > 20
    setups = [unquote(link.partition("&setup=")[2]) for link in links]
    assert [told["refused"] for told in said(setups)] == [None] * len(links)


def test_experiments_have_what_was_measured_of_their_setups():
    for path, experiment in play.experiments():
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert kept["setups"] == {label: setup.id for label, setup in experiment.setups().items()}
        assert all(play.refusal(setup) is None for setup in experiment.setups().values())
    assert len(play.told()) == 8
