"""``paritylab inside``: measures of trained networks that were saved."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, add_functions, add_seed, count, print_json
from paritylab.errors import require, unknown

MEASURES = ("fourier", "influences", "subnetwork", "movement", "margins", "sharpness", "alignment")
OF_SAMPLES = tuple(name for name in MEASURES if name != "movement")
"""Those that can look at a sample of inputs."""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "inside",
        help="look inside saved networks: Fourier, influences, units, margins, sharpness",
        description="Measures of the networks in a safetensors file that 'paritylab networks', 'zoo' or .save wrote:"
        f" {', '.join(MEASURES)}. To n = 20 most are exact; those of samples have intervals"
        " (docs/how-to/look-inside.md).",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a .safetensors file with networks")
    parser.add_argument("--measures", nargs="+", default=["fourier", "influences", "margins"], metavar="NAME",
                        help=f"which ones: {', '.join(MEASURES)}")
    parser.add_argument("--first", type=count, default=None, metavar="N", help="only the first N networks of the file")
    parser.add_argument("--of", default="sign", help="what fourier and influences are of: sign or output")
    parser.add_argument("--largest", type=count, default=5, metavar="N", help="coefficients that fourier tells")
    parser.add_argument("--keep", type=float, default=0.99, metavar="SHARE", help="accuracy that a subnetwork keeps")
    parser.add_argument("--samples", type=count, default=None, metavar="N",
                        help="look at so many inputs; unless said, at all of them where a measure can")
    add_seed(parser)
    add_functions(parser)
    add_common(parser, run, out=False)


def run(options: argparse.Namespace) -> None:
    for name in options.measures:
        if name not in MEASURES:
            raise unknown("measure", name, MEASURES)
    require(options.first is None or options.first >= 1, f"--first must be at least 1, not {options.first}")
    from paritylab.functions import finding
    from paritylab.measures import inside
    from paritylab.trained import TrainedNetworks

    with finding.also_in(options.functions):
        networks = TrainedNetworks.load(options.file)[: options.first]
    own: dict[str, dict[str, Any]] = {
        "fourier": {"of": options.of, "largest": options.largest}, "influences": {"of": options.of},
        "subnetwork": {"keep": options.keep}}
    found = {}
    for name in dict.fromkeys(options.measures):
        arguments = own.get(name, {})
        if name in OF_SAMPLES:
            arguments |= {"samples": options.samples, "seed": options.seed, "progress": False if options.json else None}
        found[name] = getattr(inside, name)(networks, **arguments)
    if options.json:
        measures = {name: {"samples": getattr(each, "samples", None), "rows": _plain(each.to_frame().to_dicts())}
                    for name, each in found.items()}
        print_json({"file": str(options.file), "setup_id": networks.setup.id, "networks": len(networks), **measures})
        return
    import polars

    print(f"{options.file}: {networks!r}")
    with polars.Config(tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_rows=20, tbl_cols=-1,
                       tbl_width_chars=200, float_precision=4):
        for name, each in found.items():
            samples = getattr(each, "samples", None)
            print(f"\n{name}{'' if samples is None else f', of {samples} inputs'}\n{each.to_frame()}")


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without numbers that JSON has not."""
    return [{name: None if isinstance(value, float) and not math.isfinite(value) else value
             for name, value in row.items()} for row in rows]
