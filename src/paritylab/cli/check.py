"""``paritylab paper check``: what is wrong with a paper, before anything is trained."""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import InvalidInput, require

if TYPE_CHECKING:
    from paritylab.claims.library import Claim, Paper


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "check",
        help="what is wrong with a paper: files, claims, values, evidence",
        description="Reads every file of a paper, loads every claim, plans its quick trial, and asks that each size has"
        " a source in values.toml and that the words of its evidence follow from the numbers. Nothing is trained"
        " ('paritylab store verify' does that). Exit status 1 if something is wrong.",
    )
    parser.add_argument("papers_given", nargs="*", metavar="PAPER",
                        help="a paper by name, or a folder with one or several; all that are here unless said")
    add_common(parser, run, out=False)


def run(options: argparse.Namespace) -> int:
    from paritylab.claims.library import papers
    from paritylab.places import also_in

    folders = [Path(text) for text in options.papers_given if Path(text).is_dir()]
    with warnings.catch_warnings(record=True) as said, also_in(folders):
        warnings.simplefilter("always")
        found = papers()
        asked = {text for text in options.papers_given if not Path(text).is_dir()}
        require(asked <= found.keys(), f"no paper and no folder: {', '.join(sorted(asked - found.keys()))}")
        chosen = [paper for name, paper in found.items() if not options.papers_given or name in asked
                  or any(folder.resolve() in (paper.folder, *paper.folder.parents) for folder in folders)]
        wrong = {paper.id: list(problems(paper)) for paper in chosen}
    notes = list(dict.fromkeys(str(each.message) for each in said))
    if options.json:
        print_json({"papers": wrong, "notes": notes})
    else:
        for paper in chosen:
            count = len(wrong[paper.id])
            print(f"{paper.id}: {len(paper.claims)} claims, {count or 'no'} problem{'s' if count != 1 else ''}",
                  *wrong[paper.id], sep="\n  ")
        print(*notes, sep="\n", end="\n" if notes else "")
    return int(bool(notes) or any(wrong.values()))


def problems(paper: Paper) -> Iterator[str]:
    """What is wrong with a paper, in words."""
    _ = paper.history, paper.remarks, paper.findings  # what is wrong with these files is a warning
    for name in paper.headlines:
        if name not in paper.claims:
            yield f"paper.toml: the headline {name} is no claim"
    for claim in paper.claims.values():
        try:
            yield from (f"{claim.id}: {text}" for text in _of(claim))
        except InvalidInput as error:
            yield f"{claim.id}: {error}"


def _of(claim: Claim) -> Iterator[str]:
    from paritylab.claims import evidence
    from paritylab.claims.reproduction import plan
    from paritylab.claims.verifying.words import differences

    with tempfile.TemporaryDirectory(prefix="paritylab-check-") as folder:
        plan(claim, "quick", Path(folder))
    if not claim.paper.own:
        yield from (f"values.toml does not say where {label!r} comes from"
                    for label in claim.values().unsaid(claim.trial.sizes()))
    for size, entry in evidence.shipped(claim.id).items():
        yield from (f"evidence of size {size}: {text}" for text in differences(claim, entry))
