"""The version of an engine's arithmetic: which sums it makes, in which order.

Records of two versions agree in distribution and differ in last bits, so they are kept apart: those of version 1 under
the engine's label (``lanes``, ``warps_NVIDIA_H200``), those of version 2 under ``lanes_2``, ``warps_2_NVIDIA_H200``.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

LABEL = re.compile(r"(?P<name>[^\W_]+)(?:_(?P<version>[1-9]\d{0,2}))?(?P<device>(?:_\w*)?)", re.ASCII)

MOST = 1000
"""Versions that a label has room for."""


class Label(NamedTuple):
    """What the label of records says; two that differ in their version alone are of one engine."""

    name: str
    version: int
    device: str

    def __str__(self) -> str:
        return self.name + (f"_{self.version}" if self.version > 1 else "") + self.device


def parsed(label: str) -> Label:
    """
    >>> parsed("lanes"), parsed("warps_2_NVIDIA_H200")
    (Label(name='lanes', version=1, device=''), Label(name='warps', version=2, device='_NVIDIA_H200'))
    """
    match = LABEL.fullmatch(label)
    return Label(label, 1, "") if match is None else Label(match["name"], int(match["version"] or 1), match["device"])


def labelled(label: str, version: int) -> str:
    """The label in another version.

    >>> labelled("lanes", 2), labelled("lanes_2", 1)
    ('lanes_2', 'lanes')
    """
    return str(parsed(label)._replace(version=version))


@functools.cache
def versions(label: str) -> frozenset[str]:
    """All labels that this one stands for where records are asked for: ``lanes`` for each version, ``lanes_2`` for one.

    >>> sorted(versions("lanes"))[:2], versions("lanes_2")
    (['lanes', 'lanes_10'], frozenset({'lanes_2'}))
    """
    if parsed(label).version > 1:
        return frozenset({label})
    return frozenset({label, *(labelled(label, version) for version in range(2, MOST))})


@functools.cache
def earlier(label: str) -> tuple[str, ...]:
    """The labels of the versions before, the newest first.

    >>> earlier("lanes_3"), earlier("lanes")
    (('lanes_2', 'lanes'), ())
    """
    return tuple(labelled(label, version) for version in range(parsed(label).version - 1, 0, -1))
