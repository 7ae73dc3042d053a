"""The command line: one file per command. Whatever goes wrong is one line on standard error and exit status 2."""

from __future__ import annotations

import argparse
import difflib
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
from paritylab.errors import InvalidInput, require
from paritylab.interrupts import Interrupts

TOP = {
    "measure and look": ("measure", "curves", "compare", "results", "figure"),
    "trained networks": ("networks", "inside", "zoo"),
    "claims of papers": ("claims", "reproduce"),
    "site and machines": ("report", "serve", "work", "doctor", "demo", "completion"),
}
"""The commands, as the table of contents has them."""
GROUPS = {
    "store": ("what was measured: bring together, tidy, follow, check", ("merge", "compact", "status", "verify")),
    "theory": ("instruments without training", ("alignment", "fourier", "search", "learners")),
    "paper": ("a paper of your own, and archives for reviewers", ("new", "check", "export")),
}
"""Commands behind a word of their own. Each paper's are behind its name."""


class Contents(Parser):
    """The parser of all commands: its help is their table of contents."""

    def __init__(self) -> None:
        from paritylab.places import PlaceWarning, places  # later than the rest: now a Ctrl-C is awaited

        super().__init__(prog="paritylab", description="How neural networks learn parities.")
        self.add_argument("--version", action="version", version=f"paritylab {__version__}")
        self.commands: Any = self._commands(self, "command")
        self.parsers: dict[str, Parser] = {}
        """By what one types, such as ``measure`` and ``store merge``."""
        self.titles: dict[str, list[str]] = {title: [] for title in TOP}
        for title, names in TOP.items():
            for name in names:
                self._take(title, "", self.commands, _module(name))
        for group, (about, names) in GROUPS.items():
            inner = self._group(group, about)
            for name in names:
                self._take(group, group, inner, _module(name))
        for place in places():
            inner = None
            for name in place.commands:
                try:
                    module = place.load(f"commands.{name}")
                    inner = inner or self._group(place.name, f"commands of {place.name}")
                    self._take(place.name, place.name, inner, module)
                except (InvalidInput, ValueError, argparse.ArgumentError) as error:  # a command of this name is there
                    warnings.warn(f"paper {place.name}, command {name} not used: {error}", PlaceWarning, stacklevel=2)

    def _commands(self, parser: Parser, name: str) -> Any:
        return parser.add_subparsers(dest=name, metavar="COMMAND", parser_class=Parser, prog=parser.prog)

    def _group(self, name: str, about: str) -> Any:
        require(name not in self.commands.choices, f"there is a command {name} already")
        parser: Parser = self.commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        parser.set_defaults(parser=parser, papers=None, run=_which)
        self.titles[name] = []
        return self._commands(parser, "within")

    def _take(self, title: str, group: str, commands: Any, module: ModuleType) -> None:
        before = set(commands.choices)
        module.add(commands)
        for name in [name for name in commands.choices if name not in before]:
            full = f"{group} {name}".strip()
            self.parsers[full] = commands.choices[name]
            self.titles[title].append(full)

    def help_of(self, name: str) -> str:
        """What a command's line in the table of contents says."""
        *group, last = name.split()
        commands = self.commands.choices[group[0]]._subparsers._group_actions[0] if group else self.commands
        return next(action.help for action in commands._choices_actions if action.dest == last)

    def format_help(self) -> str:
        wide = max(map(len, self.parsers)) + 2
        lines = [f"usage: {self.prog} COMMAND [options]", "", str(self.description), ""]
        for title, names in self.titles.items():
            shown = title if title in TOP else f"{title}: {self.help_of(title)}"
            lines += [shown, *(f"  {name:<{wide}}{self.help_of(name)}" for name in names), ""]
        lines.append(f"'{self.prog} COMMAND --help' tells all about one; '{self.prog} --version', which version it is.")
        return "\n".join(lines) + "\n"

    def unknown_command(self, said: str) -> str:
        """What to say of a command that there is not."""
        last = {name.split()[-1]: name for name in self.parsers}
        near = last.get(said) or next(iter(difflib.get_close_matches(said, [*self.parsers, *GROUPS, *last], n=1)), "")
        hint = f" (did you mean '{last.get(near, near)}'?)" if near else ""
        return f"unknown command {said!r}{hint}; '{self.prog} --help' lists them"


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"paritylab.cli.{name}")


def _which(options: argparse.Namespace) -> None:
    """Of a group that was named without a command."""
    names = next(action for action in options.parser._actions if action.dest == "within").choices
    raise InvalidInput(f"which command? allowed: {', '.join(f'{options.command} {name}' for name in names)}")


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
        said = list(sys.argv[1:] if arguments is None else arguments)
        if said and not said[0].startswith("-") and said[0] not in parser.commands.choices:
            raise InvalidInput(parser.unknown_command(said[0]))
        options = parser.parse_args(said)
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
