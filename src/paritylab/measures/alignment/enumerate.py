"""Alignment of a unit by visiting every weight vector, bias and input: for discrete laws and few inputs."""

from __future__ import annotations

import itertools

import numpy as np

from paritylab.errors import require
from paritylab.measures.alignment.found import Found
from paritylab.measures.alignment.laws import Law
from paritylab.measures.alignment.units import Unit
from paritylab.measures.coefficients import character, sums

MOST = 2**25


def enumerate_weights(law: Law, bias: Law, d: int, k: int, unit: Unit) -> Found:
    require(law.discrete and bias.discrete, "only discrete weights and biases can be enumerated; use 'integral'")
    count = (2 * len(law.atoms)) ** d * len(bias.atoms)
    require(count <= MOST, f"enumeration takes at most {MOST} weights and inputs, not {count}; use 'lattice'")
    chi = character(np.arange(d) < k)
    spacing = float(law.spacing)
    atoms = [(float(a) / spacing, float(p)) for a, p in zip(law.atoms, law.probabilities, strict=True)]
    total = 0.0
    for chosen in itertools.product(atoms, repeat=d):
        weight = float(np.prod([p for _, p in chosen]))
        z = spacing * sums(np.array([a for a, _ in chosen]))
        for atom, p in zip(bias.atoms, bias.probabilities, strict=True):
            total += weight * float(p) * float((chi * unit(z + float(atom))).mean()) ** 2
    return Found.of(total, 1e-13 * total + 1e-33)
