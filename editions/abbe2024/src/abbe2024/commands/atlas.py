"""``paritylab abbe2024 atlas``: exact alignment of many initialisations beside what networks learn from them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "atlas",
        help="exact alignment of many initialisations beside what networks learn from them",
        description="Trains two- and four-layer networks on the parity of all d bits from 16 initialisations; prints"
        " log10 of the exact gradient alignment of a neuron and the mean test accuracy (bold: 95 % interval above"
        " 0.51). Data (CSV) and a figure are written under --out. Without --quick or --full: two layers only.",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", default="standard",
                      help="d = 10 and 20, two layers, 5,000 steps")
    size.add_argument("--full", dest="size", action="store_const", const="full",
                      help="both networks, d from 10 to 100, 50,000 steps: minutes on a GPU, hours on a CPU")
    parser.add_argument("--record", action="store_true", help="make this the atlas that the package ships")
    parser.add_argument("--export", type=Path, metavar="FILE",
                        help="train nothing; write what is missing, for 'paritylab work' elsewhere")
    add_seed(parser)
    parser.add_argument("--engine", default="auto", help="auto, jax, lanes or warps")
    parser.add_argument("--threads", type=count, help="cores for the native engine; all unless said")
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    import polars as pl

    from abbe2024 import atlas
    from paritylab import plots
    from paritylab.claims.lab import Lab
    from paritylab.claims.requests import Planned
    from paritylab.running.tasks import to_text
    from paritylab.storage.files import write_atomically

    if shows_script(options):
        return
    plan = [] if options.export else None
    lab = Lab(options.size, options.out, options.seed, options.engine, options.threads,
              False if options.json else None, plan)
    try:
        with hired(options):
            rows = atlas.atlas(lab)
    except Planned:
        write_atomically(options.export, to_text(plan or []).encode())
        if options.json:
            print_json({"tasks": len(plan or []), "file": str(options.export)})
        else:
            print(f"{len(plan or [])} tasks: {options.export}")
        return
    data = pl.DataFrame(rows).write_csv().encode()
    options.out.mkdir(parents=True, exist_ok=True)
    files = [options.out / f"atlas-{options.size}.csv", *([atlas.SHIPPED] if options.record else [])]
    for path in files:
        write_atomically(path, data)
    files += plots.save(atlas.atlas_plot(rows), options.out / f"atlas-{options.size}")
    agreement = atlas.agreement(rows)
    if options.json:
        print_json({"rows": rows, "agreement": agreement, "files": [str(path) for path in files]})
        return
    for network in dict.fromkeys(row["network"] for row in rows):
        print(f"{network}: log10 of the alignment, and accuracy\n\n{atlas.table(rows, network)}\n")
    print("Spearman correlation of alignment and accuracy over the laws")
    for name, value in agreement.items():
        print(f"  {name}: {value:.3f}")
    for path in files:
        print(path)
