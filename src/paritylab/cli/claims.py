"""``paritylab claims``: every published claim and where it stands."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import InvalidInput, require

if TYPE_CHECKING:
    from paritylab.claims import Claim
    from paritylab.claims.standing import Standing


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "claims",
        help="list the published claims and where they stand",
        description="Every claim with its kind and result; 'claims show ID' tells all about one, made from its code:"
        " where it stands, its sizes, what it asks for, its rules, and the evidence.",
    )
    parser.add_argument("show", nargs="*", metavar="show ID", help="show these claims in full (globs are allowed)")
    parser.add_argument("--paper", help="only this paper's claims")
    parser.add_argument("--markdown", action="store_true", help="a page of shipped evidence:"
                        " the site's 'What holds'")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.claims.library import paper
    from paritylab.claims.registry import find, registry

    if options.show:
        require(options.show[0] == "show" and len(options.show) > 1,
                f"'claims' takes nothing, or: show ID...; not {' '.join(options.show)!r}")
    chosen = paper(options.paper) if options.paper is not None else None
    claims = find(options.show[1:]) if options.show else list(registry().values())
    claims = [claim for claim in claims if chosen in (None, claim.paper)]
    if not claims:
        raise InvalidInput(f"none of these claims is of {options.paper}")
    if options.markdown:
        from paritylab.claims.pages import markdown

        require(not options.json, "--markdown does not go with --json")
        print(markdown(claims))
        return
    from paritylab.claims.standing import standing

    stand = [standing(options.out, claim) for claim in claims]
    rows = [describe(*each, options.out, full=bool(options.show)) for each in zip(claims, stand, strict=True)]
    if options.json:
        print_json({"claims": rows})
    elif options.show:
        print("\n\n".join(map(page, rows)))
    else:
        print_list(rows, [each for each in stand if not each.claim.paper.own])


def describe(claim: Claim, stands: Standing, out: Path, full: bool) -> dict[str, Any]:
    """A claim and its evidence as plain JSON values."""
    from paritylab.claims import evidence

    found = stands.found
    row: dict[str, Any] = {"id": claim.id, "paper": claim.paper.id, "kind": claim.kind, "title": claim.title,
                           "own": claim.paper.own}
    if full:
        from paritylab.claims.pages import history_lines
        from paritylab.claims.texts import request_lines, rule_lines, size_lines

        row |= {"where": claim.where, "statement": claim.statement, "published": claim.published,
                "source": claim.source, "sizes": size_lines(claim), "values": claim.values().sources,
                "asks": {"quick": request_lines(claim, "quick"), "full": request_lines(claim, "full")},
                "rules": rule_lines(claim), "remark": claim.remark, "history": history_lines(claim)}
        row["all_evidence"] = {
            source: {size: entry | {"file_digests": evidence.files_of(claim.id, entry | {"source": source})}
                     for size, entry in entries.items()}
            for source, entries in (("shipped", evidence.shipped(claim.id)), ("local", evidence.local(out, claim.id)))}
    return {**row, "result": stands.word, "results": stands.results, "told": stands.lines, "evidence": found or {}}


def print_list(rows: Sequence[dict[str, Any]], standings: Sequence[Standing]) -> None:
    from paritylab.claims.standing import told

    width = max(len(row["id"]) for row in rows)
    for row in rows:
        found = row["evidence"]
        where = f"{found['size']}, {found['source']}" if found else ""
        print(f"{row['id']:{width}}  {row['kind']:9}  {row['result']:12}  {where:17}  {row['title']}")
    print(f"{len(rows)} claims; {told(standings)}")


def page(row: dict[str, Any]) -> str:
    """All about one claim."""
    lines = [f"{row['id']}: {row['title']}", f"{row['where']} ({row['kind']})", row["source"]]
    lines += _section("statement", [row["statement"]]) + _section("published", [row["published"]])
    lines += _section("result", row["told"] or ["no evidence yet"])
    lines += _section("sizes", row["sizes"])
    for source, values in row["values"].items():
        lines += _section(f"values {source}", [f"{name}: {text}" for name, text in values.items()])
    lines += _section("asks for, quick", row["asks"]["quick"]) + _section("asks for, full", row["asks"]["full"])
    lines += _section("pass rule", row["rules"]) + _evidence(row["all_evidence"])
    if row["remark"]:
        lines += _section("remark", [row["remark"]])
    if row["history"]:
        lines += _section("history", row["history"])
    return "\n".join(lines)


def _section(title: str, texts: Sequence[str]) -> list[str]:
    return [f"\n{title}:", *(textwrap.fill(text, 112, initial_indent="  ", subsequent_indent="    ") for text in texts)]


def _evidence(sources: dict[str, dict[str, Any]]) -> list[str]:
    from paritylab.claims.pages import check_line, origin_lines

    lines = ["\nevidence:" if any(sources.values()) else "\nevidence: none yet"]
    for source, sizes in sources.items():
        for size, found in sizes.items():
            engines = f"; engines {', '.join(found['engines'])}" if found["engines"] else ""
            lines.append(f"  {size}, {source} ({found['date']}, seed {found['seed']}, {found['runs']} runs,"
                         f" {found['seconds']:g} s on {found['hardware']}{engines})")
            lines += [f"    {name}: {value}" for name, value in found["parameters"].items()]
            lines += [f"    {line}" for line in map(check_line, found["checks"])]
            lines += [f"    {name}: {'unknown' if value is None else value}"
                      for name, value in found["numbers"].items()]
            lines += [f"    note: {found['note']}"] if found["note"] else []
            lines += [f"    {line}" for line in origin_lines(found, found["file_digests"])]
    return lines
