"""An argument parser whose errors are one line, with the nearest known option suggested."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import shutil
from pathlib import Path
from typing import Any, NoReturn

from paritylab.errors import InvalidInput


class Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Help in which a default is said where there is one, and most options take a line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=max(80, min(120, shutil.get_terminal_size().columns - 2)))

    def _get_help_string(self, action: argparse.Action) -> str | None:
        nothing = action.default in (None, False, argparse.SUPPRESS, []) or action.nargs == 0
        return action.help if nothing else super()._get_help_string(action)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        """The positional arguments alone: all options follow, by groups."""
        positional = [action for action in actions if not action.option_strings]
        text = super()._format_usage(usage, positional, [], prefix).rstrip()
        return f"{text} [options]\n\n"


class Parser(argparse.ArgumentParser):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", Formatter)
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(self._improve(message))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            command = getattr(options, "parser", self)
            command.error(f"unrecognized arguments: {' '.join(rest)}")
        return options

    def _get_values(self, action: Any, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # of which argparse makes an empty list
            raise argparse.ArgumentError(action, "a value is missing")
        return super()._get_values(action, arg_strings)  # pyright: ignore[reportAttributeAccessIssue]

    def _improve(self, message: str) -> str:
        if found := re.match(r"unrecognized arguments: (\S+)", message):
            known = [option for action in self._actions for option in action.option_strings]
            near = difflib.get_close_matches(found[1].split("=")[0], known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            return f"unknown option {found[1]}{hint}; '{self.prog} --help' lists them"
        if found := re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message):
            (known,) = (action.choices for action in self._actions if action.metavar == "COMMAND")
            near = difflib.get_close_matches(found[1], list(known or ()), n=1)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            return f"unknown command {found[1]!r}{hint}; '{self.prog} --help' lists them"
        return message


def add_common(parser: Parser, run: Any, out: bool = True) -> None:
    """What every command takes; ``out`` unless it says by itself where results go."""
    if out:
        parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where results are kept")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--papers", action="append", type=Path, default=None, metavar="DIR",
                        help="a folder with a paper, or with several, that need not be installed")
    parser.set_defaults(run=run, parser=parser)


def add_functions(parser: Any) -> None:
    """What commands take that read Setups from files."""
    parser.add_argument("--functions", action="append", default=[], metavar="MODULE",
                        help="an importable module with functions of your own that Setups have; may be said again")


def add_seed(parser: Any) -> None:
    """What every command takes that draws random numbers."""
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="root of all random numbers")


def print_json(value: Any) -> None:
    print(json.dumps(value, allow_nan=False))


def count(text: str) -> int:
    """A whole number, also written as 1e6 or 1_000_000."""
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}") from None
    if value != value or abs(value) == float("inf") or value != int(value):
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}")
    if abs(value) >= 2**63:
        raise argparse.ArgumentTypeError(f"not below 2^63: {text!r}")
    return int(value)


def seed(text: str) -> int:
    """A whole number of 32 bits."""
    value = count(text)
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"seed must be in 0..2^32-1, not {value}")
    return value
