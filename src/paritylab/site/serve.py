"""The site on loopback, and what is going on: built again when a claim was tried, live while sweeps train."""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import json
import threading
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from paritylab import status
from paritylab.site import build
from paritylab.site.results import going_on

HOST = "127.0.0.1"
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:"


class Watcher:
    """Builds the site, and again when results have changed; tells what is going on."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self._lock = threading.Lock()
        self._built = ""

    def refresh(self) -> str:
        """Build if there is something new; a name for what was built."""
        with self._lock:
            now = self._state()
            if now != self._built:
                build.report(self.out, live=True)
                self._built = now
            return self._built

    def live(self) -> dict[str, Any]:
        """Running and queued sweeps with what their stored records say so far."""
        return {"built": self.refresh(), "sweeps": going_on(self.out)}

    def _state(self) -> str:
        """Changes with every claim tried, and when a sweep ends: records of one that goes on do not count."""
        busy = {job["setup_id"] for sweep in status.sweeps(self.out / "store") for job in sweep["jobs"]}
        patterns = ("claims/*/*/result.json", "*.svg", "store/*/*.parquet")
        names = [name for pattern in patterns for name in glob.glob(pattern, root_dir=self.out)]
        listed = "\n".join(_stamps(self.out / name for name in sorted(names) if Path(name).parent.name not in busy))
        return hashlib.sha256(listed.encode()).hexdigest()[:16]


def _stamps(paths: Iterable[Path]) -> Iterator[str]:
    """Files and when they were last written; those that vanish meanwhile are left out."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield f"{path} {path.stat().st_mtime_ns}"


class Handler(SimpleHTTPRequestHandler):
    """Files of the site, and ``/api/live.json``; only for this machine, by its own name."""

    def __init__(self, *args: Any, watcher: Watcher, **kwargs: Any) -> None:
        self.watcher = watcher
        super().__init__(*args, directory=str(watcher.out / "site"), **kwargs)

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        if host not in (HOST, "localhost"):  # another name may be a page elsewhere that points here
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == "/api/live.json":
            data = json.dumps(self.watcher.live(), allow_nan=False).encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        else:
            super().do_GET()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: the terminal belongs to the one line that says where the site is."""


def server(out: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server for the site of ``out``, built and ready; ``serve_forever`` starts it."""
    watcher = Watcher(out)
    watcher.refresh()
    return ThreadingHTTPServer((HOST, port), functools.partial(Handler, watcher=watcher))
