"""Memory: what work would take and what there is. Too much is refused in one line before anything is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from paritylab.errors import InvalidInput

CGROUPS = Path("/sys/fs/cgroup")


class TooLarge(InvalidInput):
    """Something takes more memory than there is."""


@dataclass(frozen=True)
class Part:
    """``count`` things of ``each`` bytes."""

    count: int
    each: float

    @property
    def bytes(self) -> float:
        return self.count * self.each


def require_room(what: str, parts: Mapping[str, Part]) -> None:
    """Refuse what takes more memory than there is; the message names the largest part and how many would do.

    >>> require_room("this sweep", {"runs": Part(10**15, 265)})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    paritylab.memory.TooLarge: this sweep takes about 265,000 TB of memory, and there are ...
    """
    needed, there = sum(part.bytes for part in parts.values()), free()
    if needed <= there:
        return
    name, largest = max(parts.items(), key=lambda item: item[1].bytes)
    left = there - (needed - largest.bytes)  # by the other parts; where nothing is, all must be less
    most = int(left / largest.each if left > 0 else largest.count * there / needed)
    raise TooLarge(f"{what} takes about {shown(needed)} of memory, and there are {shown(there)};"
                   f" allowed: {name} up to {most:,}, not {largest.count:,}")


def shown(size: float) -> str:
    """Bytes for people.

    >>> shown(265e9), shown(1.2e6)
    ('265 GB', '1 MB')
    """
    unit, name = next(((unit, name) for unit, name in ((1e12, "TB"), (1e9, "GB")) if size >= unit), (1e6, "MB"))
    return f"{size / unit:,.{1 if size < 10 * unit and unit > 1e6 else 0}f} {name}"


def free() -> float:
    """Bytes that this process can still have: of the machine, of its container and by its own limit."""
    return min(_of_the_machine(), _of_the_container(), _by_its_limit())


def _of_the_machine() -> float:
    if found := re.search(r"MemAvailable:\s+(\d+) kB", _text(Path("/proc/meminfo"))):
        return 1024.0 * int(found[1])
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # a system that does not tell
        return float("inf")


def _of_the_container() -> float:
    """The least that the control groups of this process leave, of either version."""
    left = [float("inf")]
    for folder, limit, used in _groups(_text(Path("/proc/self/cgroup"))):
        most, now = (_text(folder / name).strip() for name in (limit, used))
        if most.isdigit() and now.isdigit():
            cache = re.search(r"^(?:total_)?inactive_file (\d+)", _text(folder / "memory.stat"), re.MULTILINE)
            left.append(int(most) - int(now) + (int(cache[1]) if cache else 0))
    return max(0.0, min(left))


def _groups(told: str) -> Iterator[tuple[Path, str, str]]:
    """The folders of the memory's control groups, from this process's own up; in a container they may not be seen."""
    for line in told.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, names = CGROUPS, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root, names = CGROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        own = Path(path.lstrip("/"))
        for folder in (own, *own.parents):
            yield root / folder, *names


def _by_its_limit() -> float:
    try:
        import resource
    except ImportError:  # no such limits
        return float("inf")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return float("inf")
    taken = re.search(r"VmSize:\s+(\d+) kB", _text(Path("/proc/self/status")))
    return max(0.0, soft - (1024.0 * int(taken[1]) if taken else 0.0))


def _text(path: Path) -> str:
    """What a file of the system says; nothing where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
