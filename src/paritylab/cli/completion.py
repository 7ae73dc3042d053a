"""``paritylab completion``: the tab key knows commands and options."""

from __future__ import annotations

import argparse
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json

SHELLS = ("bash", "zsh", "fish")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "completion",
        help="a script with which bash, zsh or fish complete commands and options",
        description="Prints a script for your shell. bash: paritylab completion bash >"
        " ~/.local/share/bash-completion/completions/paritylab; zsh: into a file _paritylab in a folder of $fpath;"
        " fish: into ~/.config/fish/completions/paritylab.fish.",
    )
    parser.add_argument("shell", choices=SHELLS, help="bash, zsh or fish")
    add_common(parser, run, out=False)


def run(options: argparse.Namespace) -> None:
    import shtab

    from paritylab.cli import build_parser

    script = shtab.complete(build_parser(), options.shell)
    print_json({"shell": options.shell, "script": script}) if options.json else print(script)
