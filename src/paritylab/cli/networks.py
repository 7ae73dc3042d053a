"""``paritylab networks``: the trained networks themselves, as files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.measure import add_engine, add_problem_and_learner, add_protocol, make_setup
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import InvalidInput, require, unknown

FORMATS = ("safetensors", "torch", "onnx")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "networks",
        help="the trained networks themselves, as safetensors, PyTorch or ONNX files",
        description="Train networks on a parity, as 'measure' does, and write them as they are at chosen moments. Runs"
        " already in the store under --out are not measured again: their networks are trained anew, to the last bit the"
        " same where the engine promises it. A safetensors file holds the networks of all runs at one moment; of"
        " PyTorch (a state_dict) and ONNX there is a file for each run.",
    )
    add_problem_and_learner(parser, several=False)
    protocol = parser.add_argument_group("protocol")
    protocol.add_argument("--runs", type=count, default=100, help="number of networks")
    add_seed(protocol)
    add_protocol(protocol)
    wanted = parser.add_argument_group("networks")
    wanted.add_argument("--at", nargs="+", default=["solved"], metavar="MOMENT",
                        help="start, before (half of t_c), solved (t_c), after (twice t_c), end, or a number of steps")
    wanted.add_argument("--omit-missing", action="store_true",
                        help="leave out runs that have no such network: unsolved or diverged ones")
    wanted.add_argument("--format", default="safetensors", help=", ".join(FORMATS))
    add_engine(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.running.exports import saved
    from paritylab.running.sweeps import sweep
    from paritylab.storage.store import Store

    require(options.threads is None or options.threads >= 1, f"--threads must be at least 1, not {options.threads}")
    require(options.runs >= 1, f"--runs must be at least 1, not {options.runs}")
    if options.format not in FORMATS:
        raise unknown("format", options.format, FORMATS)
    moments = [_moment(text) for text in options.at]
    write = _writer(options.format)
    setup = make_setup(options, options.lr[0])
    progress = False if options.json else None
    (result,) = sweep([setup], options.runs, seed=options.seed, engine=options.engine, threads=options.threads,
                      store=Store(options.out / "store"), progress=progress)
    folder, common = options.out / "networks", {"threads": options.threads, "progress": progress}
    files = []
    for moment in moments:
        stem = f"{setup.id}-{result.engine}-{result.seed}-{moment}"
        if write is None:
            path = folder / f"{stem}.safetensors"
            networks = saved(result, path, range(options.runs), moment, omit_missing=options.omit_missing, **common)
        else:
            path = folder / stem
            networks = result.networks(range(options.runs), moment, omit_missing=options.omit_missing, **common)
            write(networks, path)
        files.append({"path": str(path), "at": moment, "networks": len(networks), "exact": networks.exact,
                      "params": sum(leaf[:1].size for leaf in networks.params.values())})
    if options.json:
        print_json({**result.to_dict(), "format": options.format, "files": files})
        return
    from paritylab.setups.words import problem_in_words

    print(f"{problem_in_words(setup.problem)}, {options.runs} runs, engine {result.engine}\n{result}")
    for file in files:
        exact = "" if file["exact"] else ", not to the last bit"
        print(f"{file['networks']} networks of {file['params']} params at {file['at']}{exact}: {file['path']}")


def _moment(text: str) -> str | int:
    from paritylab.trained.regenerating import MOMENTS

    if text in MOMENTS:
        return text
    if not text.isdigit():
        raise unknown("moment", text, (*MOMENTS, "a number of steps"))
    return int(text)


def _writer(kind: str) -> Any:
    """What writes networks as a folder with a file for each; None for a format that has all in one."""
    if kind == "safetensors":
        return None
    try:
        if kind == "torch":
            import torch  # noqa: F401
        else:
            import onnx  # noqa: F401
    except ModuleNotFoundError:
        name = {"torch": "PyTorch", "onnx": "onnx"}[kind]
        raise InvalidInput(f"--format {kind} needs {name} (pip install 'paritylab[{kind}]')") from None
    return _write_torch if kind == "torch" else _write_onnx


def _write_torch(networks: Any, folder: Path) -> None:
    import io

    import torch

    def data(network: Any) -> bytes:
        buffer = io.BytesIO()
        torch.save(network.to_torch().state_dict(), buffer)
        return buffer.getvalue()

    _write_each(networks, folder, "pt", data)


def _write_onnx(networks: Any, folder: Path) -> None:
    _write_each(networks, folder, "onnx", lambda network: network.to_onnx().SerializeToString())


def _write_each(networks: Any, folder: Path, suffix: str, data: Any) -> None:
    from paritylab.storage.files import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    for network in networks:
        write_atomically(folder / f"run-{network.run}.{suffix}", data(network))
