"""Setups in words, as lists and pages show them."""

from __future__ import annotations

from typing import Any


def network_in_words(network: dict[str, Any]) -> str:
    """A network's JSON in a few words: ``mlp 10 relu``.

    >>> network_in_words({"type": "mlp", "width": 10, "activation": "relu", "output_bias": True})
    'mlp 10 relu'
    """
    words = [network["type"]]
    for name, value in sorted(network.items(), reverse=True):
        if name not in ("type", "output_bias"):
            words.append("x".join(map(str, value)) if isinstance(value, list) else str(value))
    return " ".join(words)
