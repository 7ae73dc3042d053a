"""The command line: one file per command. Whatever goes wrong is one line on standard error and exit status 2."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from paritylab import __version__
from paritylab.cli.interrupts import Interrupts
from paritylab.cli.parser import Parser
from paritylab.errors import InvalidInput

COMMANDS = (
    "adaptive", "alignment", "atlas", "campaign", "claims", "compare", "curves", "demo", "flow", "fourier", "leaky",
    "measure", "merge", "report", "reproduce", "results", "search", "serve", "status", "two-stage", "work", "xor",
)


def build_parser() -> Parser:
    parser = Parser(prog="paritylab", description="How neural networks learn parities.")
    parser.add_argument("--version", action="version", version=f"paritylab {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in COMMANDS:
        importlib.import_module(f"paritylab.cli.{name.replace('-', '_')}").add(commands)
    return parser


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
        options = build_parser().parse_args(arguments)
        if options.command is None:
            raise InvalidInput(f"which command? allowed: {', '.join(COMMANDS)}")
        options.run(options)
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
    return 0


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
