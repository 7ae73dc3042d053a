"""``paritylab serve``: the site on loopback, live while runs go on."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from paritylab.cli.parser import Parser, add_common, count, print_json
from paritylab.errors import InvalidInput, require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "serve",
        help="show the site on this machine, live while runs go on",
        description="Builds the site and shows it on 127.0.0.1 only; its page 'Live' follows the sweeps that train into"
        " the store under --out, and the pages follow new results. Ctrl-C ends it.",
    )
    parser.add_argument("--port", type=count, default=8017, help="0 takes any free one")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.cli import reference
    from paritylab.site import serve

    require(0 <= options.port < 65536, f"--port must be in 0..65535, not {options.port}")
    try:
        server = serve.server(options.out, options.port, reference.pages())
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInput(f"cannot listen on port {options.port}: {reason}; choose another") from error
    with server:
        url = f"http://{serve.HOST}:{server.server_address[1]}/"
        if options.json:
            print_json({"url": url})
        else:
            print(f"{url}  (Ctrl-C ends it)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
