"""Examples as bits in 64-bit words, a row of words for each feature: what searches for supports read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paritylab.baselines import gf2

Words = NDArray[np.uint64]
Bits = NDArray[np.bool_]


class Packed(NamedTuple):
    """``columns`` (features, words) and ``labels`` (words,) of so many ``rows``; bits beyond the last row are 0."""

    columns: Words
    labels: Words
    rows: int

    @staticmethod
    def of(x: Bits, y: Bits) -> Packed:
        """Of bits x (rows, features) and y (rows,).

        >>> Packed.of(np.eye(2, dtype=bool), np.array([True, True]))
        Packed(columns=array([[1],
               [2]], dtype=uint64), labels=array([3], dtype=uint64), rows=2)
        """
        return Packed(gf2.pack(x.T), gf2.pack(y[None])[0], len(y))

    @property
    def features(self) -> int:
        return len(self.columns)

    @property
    def words(self) -> int:
        return len(self.labels)

    def ends(self) -> NDArray[np.int64]:
        """Rows up to the end of each word."""
        return np.minimum(64 * np.arange(1, self.words + 1), self.rows)

    def against_the_first_row(self) -> Packed:
        """Each bit added to the first one of its column: a parity and its opposite are the same then."""
        last = (1 << (self.rows - 64 * (self.words - 1))) - 1
        ones = np.full(self.words, 2**64 - 1, np.uint64)
        ones[-1] = last
        flipped = (self.columns[:, 0] & np.uint64(1)).astype(bool)
        columns = np.where(flipped[:, None], self.columns ^ ones, self.columns)
        labels = self.labels ^ ones if int(self.labels[0]) & 1 else self.labels
        return Packed(columns, labels, self.rows)

    def bits_of(self, rows: NDArray[np.intp]) -> tuple[Words, int]:
        """These rows' bits of each column, and of the labels, added to those of the first of them: keys of one bit less
        than there are rows."""
        def gathered(words: Words) -> Words:
            bits = (words[..., rows // 64] >> (rows % 64).astype(np.uint64)) & np.uint64(1)
            places = np.arange(len(rows) - 1, dtype=np.uint64)
            return ((bits[..., 1:] ^ bits[..., :1]) << places).sum(axis=-1, dtype=np.uint64)

        return gathered(self.columns), int(gathered(self.labels))

    def hashes(self, generator: np.random.Generator) -> tuple[Words, int]:
        """64-bit keys of all columns, and of the labels: sums (exclusive or) of random words over the ones, so that the
        key of a sum is the sum of keys."""
        found = np.zeros(self.features + 1, np.uint64)
        all_bytes = np.vstack([self.columns, self.labels]).astype("<u8").view(np.uint8)
        for place in range(all_bytes.shape[1]):
            table = np.zeros(1, np.uint64)  # of every byte, a bit more each time
            for word in generator.integers(0, 2**64, 8, np.uint64):
                table = np.concatenate([table, table ^ word])
            found ^= table[all_bytes[:, place]]
        return found[:-1], int(found[-1])

    def of_features(self, chosen: NDArray[np.intp]) -> Packed:
        return self._replace(columns=np.ascontiguousarray(self.columns[chosen]))


def copies(packed: Packed) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of the features that are equal, or opposite, in all rows, in order, and how many each stands for.

    >>> x = np.array([[0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]], bool)
    >>> [found.tolist() for found in copies(Packed.of(x, x[:, 0]))]
    [[0, 1, 3], [1, 2, 1]]
    """
    columns = np.ascontiguousarray(packed.against_the_first_row().columns)
    whole = columns.view(np.dtype((np.void, columns.shape[1] * 8)))[:, 0]
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], counts[order]
