"""``paritylab claims``: every published claim and where it stands."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import InvalidInput, require, unknown


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "claims",
        help="list the published claims and where they stand",
        description="Every claim with its kind, cost tier and verdict; 'claims show ID' tells all about one.",
    )
    parser.add_argument("show", nargs="*", metavar="show ID", help="show these claims in full (globs are allowed)")
    parser.add_argument("--paper", help="only this paper's claims")
    parser.add_argument("--markdown", action="store_true", help="a page of shipped evidence, as docs/reproduction.md")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.claims.registry import PAPERS, find, registry

    if options.show:
        require(options.show[0] == "show" and len(options.show) > 1,
                f"'claims' takes nothing, or: show ID...; not {' '.join(options.show)!r}")
    if options.paper is not None and options.paper not in PAPERS:
        raise unknown("paper", options.paper, PAPERS)
    claims = find(options.show[1:]) if options.show else list(registry().values())
    claims = [claim for claim in claims if options.paper in (None, claim.paper)]
    if not claims:
        raise InvalidInput(f"none of these claims is of {options.paper}")
    if options.markdown:
        from paritylab.claims.pages import markdown

        require(not options.json, "--json and --markdown exclude each other")
        print(markdown(claims))
        return
    rows = [describe(claim, options.out, full=bool(options.show)) for claim in claims]
    if options.json:
        print_json({"claims": rows})
    elif options.show:
        print("\n\n".join(page(row) for row in rows))
    else:
        print_list(rows)


def describe(claim: Any, out: Any, full: bool) -> dict[str, Any]:
    """A claim and its evidence as plain JSON values."""
    from paritylab.claims import evidence
    from paritylab.claims.registry import remarks

    found = evidence.strongest(out, claim.id)
    row = {name: getattr(claim, name) for name in ("id", "paper", "kind", "tier", "title")}
    if full:
        names = ("where", "statement", "setup", "expect", "criterion", "quick", "cost", "cost_note", "depends")
        row |= {name: getattr(claim, name) for name in names}
        row["remark"] = remarks().get(claim.id, "")
        row["all_evidence"] = {"shipped": evidence.shipped(claim.id), "local": evidence.local(out, claim.id)}
    return {**row, "verdict": found and found["verdict"], "evidence": found or {}}


def print_list(rows: list[dict[str, Any]]) -> None:
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        found = row["evidence"]
        where = f"{found['size']}, {found['source']}" if found else ""
        print(f"{row['id']:{width}}  {row['kind']:9}  {row['tier']:7}  {row['verdict'] or '-':14}  {where:17}"
              f"  {row['title']}")
    verdicts = [row["verdict"] for row in rows]
    counts = [f"{verdicts.count(name)} {name or 'not tried'}"
              for name in ("reproduced", "not reproduced", "inconclusive", None) if name in verdicts]
    print(f"{len(rows)} claims: {', '.join(counts)}")


def page(row: dict[str, Any]) -> str:
    """All about one claim."""
    from paritylab.claims.pages import check_line

    lines = [f"{row['id']}: {row['title']}", f"{row['where']} ({row['kind']}, {row['tier']}, {row['cost']:.1e} FLOP)"]
    for name in ("statement", "setup", "expect", "criterion", "quick"):
        title = {"expect": "published", "criterion": "pass rule"}.get(name, name)
        text = "\n".join(textwrap.fill(line, 110) for line in row[name].strip().splitlines())
        lines += [f"\n{title}:", textwrap.indent(text, "  ")]
    lines.append("\nevidence:" if any(row["all_evidence"].values()) else "\nevidence: none yet")
    for source, sizes in row["all_evidence"].items():
        for size, found in sizes.items():
            engines = f"; engines {', '.join(found['engines'])}" if found["engines"] else ""
            lines.append(f"  {found['verdict']} ({size}, {source}, {found['date']}, {found['runs']} runs,"
                         f" {found['seconds']:g} s on {found['hardware']}{engines})")
            lines += [f"    {line}" for line in map(check_line, found["checks"])]
            lines += [f"    {name}: {value}" for name, value in found["numbers"].items()]
            lines += [f"    note: {found['note']}"] if found["note"] else []
    if row["remark"]:
        lines += ["\nremark:", textwrap.indent(textwrap.fill(row["remark"], 110), "  ")]
    return "\n".join(lines)
