"""The command line: one file per command. Whatever goes wrong is one line on standard error and exit status 2."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from paritylab import __version__
from paritylab.cli.parser import Parser
from paritylab.errors import InvalidInput
from paritylab.interrupts import Interrupts

GROUPS = {
    "measure and look": ("measure", "versus", "curves", "compare", "results", "figure", "status"),
    "trained networks": ("networks", "inside", "zoo"),
    "claims": ("claims", "reproduce", "verify", "export"),
    "theory instruments": ("alignment", "fourier", "search"),
    "site": ("report", "serve"),
    "store and machines": ("demo", "doctor", "merge", "compact", "work"),
}
"""The commands, as the table of contents has them; papers add their own."""


class Contents(Parser):
    """The parser of all commands: its help is their table of contents."""

    def __init__(self) -> None:
        from paritylab.places import PlaceWarning, places  # later than the rest: now a Ctrl-C is awaited

        super().__init__(prog="paritylab", description="How neural networks learn parities.")
        self.add_argument("--version", action="version", version=f"paritylab {__version__}")
        self.commands: Any = self.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
        self.groups: dict[str, list[str]] = {}
        for title, names in GROUPS.items():
            for name in names:
                self._take(title, importlib.import_module(f"paritylab.cli.{name.replace('-', '_')}"))
        for place in places():
            for name in place.commands:
                try:
                    self._take(f"of {place.name}", place.load(f"commands.{name}"))
                except (InvalidInput, ValueError) as error:  # argparse: a command of this name is there already
                    warnings.warn(f"paper {place.name}, command {name} not used: {error}", PlaceWarning, stacklevel=2)

    def _take(self, title: str, module: ModuleType) -> None:
        before = set(self.commands.choices)
        module.add(self.commands)
        self.groups.setdefault(title, []).extend(name for name in self.commands.choices if name not in before)

    def format_help(self) -> str:
        told = {action.dest: action.help for action in self.commands._choices_actions}
        lines = [f"usage: {self.prog} COMMAND [options]", "", str(self.description), ""]
        for title, names in self.groups.items():
            lines += [title, *(f"  {name:<12}{told[name]}" for name in names), ""]
        lines.append(f"'{self.prog} COMMAND --help' tells all about one; '{self.prog} --version', which version it is.")
        return "\n".join(lines) + "\n"


def build_parser() -> Contents:
    return Contents()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    warnings.showwarning = _show_warning
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path need not be text
    with Interrupts() as interrupts:
        status = _run(arguments, interrupts)
    if arguments is None:  # the process ends now, and does not mind a late Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


def _run(arguments: Sequence[str] | None, interrupts: Interrupts) -> int:
    try:
        parser = build_parser()
        options = parser.parse_args(arguments)
        if options.command is None:
            raise InvalidInput(f"which command? allowed: {', '.join(parser.commands.choices)}")
        from paritylab.places import also_in

        with also_in(options.papers or ()):
            status = options.run(options) or 0  # what a check found; everything else that ends has done its work
        sys.stdout.flush()
    except InvalidInput as error:
        return _complain(error)
    except KeyboardInterrupt:
        return _give_way()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the exit does not complain again
        return 0
    except OSError as error:
        return _complain(f"{error.strerror or error}: {error.filename}" if error.filename else error)
    except MemoryError:
        return _complain("this needs more memory than the machine has; fewer runs, or a smaller network or batch")
    except BaseException as error:  # a panic of Polars is no Exception
        if interrupts.came:
            return _give_way()
        if type(error).__name__ != "JaxRuntimeError" or "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return _complain("this needs more memory than the device has; use a smaller network or batch")
    return status


def _give_way() -> int:
    exec("")  # CPython remembers an interruption that passed through an exec() and would end by it; now it forgets
    print("paritylab: interrupted; the same command goes on from here", file=sys.stderr)
    return 130


def _complain(error: object) -> int:
    print(f"paritylab: error: {' '.join(str(error).split())}", file=sys.stderr)
    return 2


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if category.__module__.startswith("paritylab"):
        print(f"paritylab: note: {message}", file=sys.stderr)
