"""The id of a Setup: a digest of its canonical JSON, less the names of functions.

A function is in the JSON as ``mine.loss@0123456789abcdef``. The digest behind the mark says what it computes, so it may
be renamed, moved, installed or run as a script without being another.
"""

from __future__ import annotations

import hashlib
import re

NAME = re.compile(r'([" ])[^ "]+(?=@[0-9a-f]{16}")')
"""A function's name in JSON text, at the start of a value or behind the words of an init."""
TRACED = "traced"
"""Tells these ids from those of stores in which functions were known by their source."""
FUNCTION = re.compile(r'(?<=[" ])[^ "]*@[^"]+(?=")')
"""A user's function in JSON text, as it is known."""


def functions_of(text: str) -> str:
    """The users' functions in the canonical JSON of a Setup, as they are known there.

    >>> functions_of('{"init":"mirrored mine.f@0123456789abcdef","loss":"@my loss v2"}')
    '@my loss v2, mine.f@0123456789abcdef'
    """
    return ", ".join(sorted(set(FUNCTION.findall(text)))) if "@" in text else ""


def id_of(text: str) -> str:
    """The id of the Setup with this canonical JSON.

    >>> id_of('{"loss":"mine.loss@0123456789abcdef"}') == id_of('{"loss":"__main__.loss@0123456789abcdef"}')
    True
    >>> id_of('{"init":"mirrored mine.f@0123456789abcdef"}') == id_of('{"init":"mine.f@0123456789abcdef"}')
    False
    """
    known = TRACED + NAME.sub(r"\1", text) if "@" in text else text
    return hashlib.sha256(known.encode()).hexdigest()[:16]
