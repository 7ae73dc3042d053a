"""Every dependency group, with the pins, is resolved against the plain package index alone.

Local folders of wheels and pip's own configuration are switched off: they hide pins that contradict each other. Nothing
is installed. ``make resolve`` runs it; it needs the index, so no test does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def resolved(*what: str) -> str:
    """What pip says against installing this; empty if nothing."""
    plain = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--constraint",
               "constraints.txt", *what]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **plain}, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


def own(path: Path) -> list[str]:
    """What an edition needs besides what is of this repository."""
    needed = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["dependencies"]
    return [name for name in needed if not name.startswith("paritylab")]


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requests = {"the package": project["project"]["dependencies"]}
    requests |= {f"extra {name}": needed for name, needed in project["project"]["optional-dependencies"].items()
                 if name != "papers"}  # which are of this repository
    requests |= {f"what {path.parent.name} needs": own(path) for path in sorted(ROOT.glob("editions/*/pyproject.toml"))}
    requests |= {f"group {name}": ["--group", name] for name in project["dependency-groups"]}
    failures = 0
    for name, what in requests.items():
        problem = resolved(*what) if what else ""
        failures += bool(problem)
        print(f"{name}: {problem or 'resolved'}", flush=True)
    sys.exit(1 if failures else 0)
