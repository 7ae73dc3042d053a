"""The site of all editions: complete, with pages of their own, recorded runs and the same bytes every time."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from pages_of_sites import check_claims, check_counts, check_links, check_recordings, pages_of

from paritylab.claims import papers, registry
from paritylab.cli import reference
from paritylab.site import build, watch


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build.build(tmp_path_factory.mktemp("nothing"), written=reference.pages())


@pytest.fixture(scope="module")
def pages(site):
    return pages_of(site)


def test_all_pages_are_there_and_every_link_leads_somewhere(site, pages):
    top = {"index.html", "figure7.html", "alignment.html", "optimisers.html", "play.html", "watch.html", "results.html"}
    assert top | {f"{paper}.html" for paper in papers()} <= set(pages)
    check_links(site, pages)


def test_the_results_shown_are_those_of_the_evidence(site):
    check_counts(site)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^paritylab reproduce ([^\s'*]+) --quick$", readme, re.MULTILINE)
    assert shown is None or shown[1] in registry.registry()


def test_every_claim_with_evidence_has_its_figure_data_source_and_command(site):
    check_claims(site)


def test_figure_7_shows_every_cell_measured_beside_published(site):
    text = site["data/figure7.js"].decode()
    table = json.loads(text.split("=", 2)[2].rstrip(";\n"))
    assert (len(table["settings"]), len(table["columns"]), len(table["cells"])) == (18, 15, 270)
    measured = [cell for cell in table["cells"].values() if "fastest" in cell]
    assert len(measured) >= 255
    assert all(cell["fastest"]["lr"] and 0 <= cell["fastest"]["solved"] <= 1 for cell in measured)
    assert table["cells"]["i 3 32"]["published"] == 318


def test_the_recorded_runs_are_small_and_their_commands_understood(site):
    check_recordings(site)
    assert len(list(watch.recordings())) >= 6
    by_name = watch.shipped()
    assert by_name["plateau"]["panels"][0]["accuracy"][-1] == 1
    rademacher, gaussian = by_name["starts"]["panels"]
    assert rademacher["accuracy"][-1] > 0.99 > 0.55 > gaussian["accuracy"][-1]


def test_a_recording_is_what_its_setup_gives(tmp_path):
    path, full = next(each for each in watch.recordings() if each[1].name == "sinusoid")
    short = json.loads(watch.record(dataclasses.replace(full, steps=full.steps[:4]), tmp_path / "short").read_text())
    shipped = json.loads(path.read_text())
    assert short["steps"] == shipped["steps"][:4]
    assert short["panels"][0]["accuracy"] == shipped["panels"][0]["accuracy"][:4]


def test_the_same_evidence_gives_the_same_bytes(site, tmp_path):
    again = build.build(tmp_path, written=reference.pages())
    assert {name for name, data in again.items() if site[name] != data} == set()
