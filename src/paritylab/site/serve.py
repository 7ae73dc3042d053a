"""The site on loopback, and what is going on: built again when a claim was tried, live while sweeps train."""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from paritylab.site import build
from paritylab.site.results import going_on
from paritylab.storage import status

HOST = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; style-src"
                               " 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; object-src 'none';"
                               " base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What every answer carries: pages need nothing from elsewhere, and pages elsewhere get nothing from here.

The page "Play" compiles WebAssembly, in workers whose source it holds itself."""
TYPES = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8", ".ipynb": "application/x-ipynb+json",
}

_OURS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)
"""Names of this machine that nobody else can take; the port may be that of a tunnel."""


class Watcher:
    """Builds the site, and again when results have changed; tells what is going on."""

    def __init__(self, out: Path, written: Mapping[str, str] | None = None) -> None:
        self.out = out
        self.written = written
        self.files: Mapping[str, bytes] = {}
        self._lock = threading.Lock()
        self._built = ""
        self._stored: list[str] = []

    def refresh(self) -> str:
        """Build if there is something new; a name for what was built."""
        with self._lock:
            now = self._state()
            if now != self._built:
                self.files = build.build(self.out, live=True, written=self.written)
                self._built = now
            return self._built

    def live(self) -> dict[str, Any]:
        """Running and queued sweeps with what their records say so far, and notes; nothing about this machine."""
        private, found = {"pid", "host"}, going_on(self.out)
        sweeps = [{name: told for name, told in sweep.items() if name not in private} for sweep in found["sweeps"]]
        notes = [note.replace(f"{self.out}{os.sep}", "") for note in found["notes"]]
        return {"built": self.refresh(), "sweeps": sweeps, "notes": notes}

    def _state(self) -> str:
        """Changes with every claim tried, and when a sweep ends: records of one that goes on do not count."""
        if all(sweep["quiet_since"] is not None for sweep in status.sweeps(self.out / "store")):
            self._stored = list(_stamps(self.out, "store/*/*.parquet"))
        listed = "\n".join([*_stamps(self.out, "claims/*/*/result.json", "*.svg"), *self._stored])
        return hashlib.sha256(listed.encode()).hexdigest()[:16]


def _stamps(out: Path, *patterns: str) -> Iterator[str]:
    """Files and when they were last written; those that vanish meanwhile are left out."""
    for path in sorted(out / name for pattern in patterns for name in glob.glob(pattern, root_dir=out)):
        with contextlib.suppress(FileNotFoundError):
            yield f"{path} {path.stat().st_mtime_ns}"


class Handler(BaseHTTPRequestHandler):
    """Files of the site as it was built, never from disk, and ``/api/live.json``; for this machine, by its own name."""

    server_version, sys_version = "paritylab", ""
    timeout = 60

    def __init__(self, *args: Any, watcher: Watcher, **kwargs: Any) -> None:
        self.watcher = watcher
        super().__init__(*args, **kwargs)

    def parse_request(self) -> bool:
        """Before any method is looked at: another name may be a page elsewhere that points here."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        if len(hosts) == 1 and _OURS.fullmatch(hosts[0].strip()):
            return True
        self.send_error(HTTPStatus.FORBIDDEN)
        return False

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        if path == "/api/live.json":
            self._send(json.dumps(self.watcher.live(), allow_nan=False).encode(), ".json")
            return
        name = path.removeprefix("/") + ("index.html" if path.endswith("/") else "")
        data = self.watcher.files.get(name) if path.startswith("/") else None
        if data is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(data, PurePosixPath(name).suffix)

    do_HEAD = do_GET

    def _send(self, data: bytes, suffix: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", TYPES.get(suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: the terminal belongs to the one line that says where the site is."""


class Server(ThreadingHTTPServer):
    """Says nothing about readers who leave before they have everything."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def server(out: Path, port: int = 0, written: Mapping[str, str] | None = None) -> Server:
    """A server for the site of ``out``, built and ready; ``serve_forever`` starts it. ``written`` is for ``build``."""
    watcher = Watcher(out, written)
    watcher.refresh()
    return Server((HOST, port), functools.partial(Handler, watcher=watcher))
