"""The browser's engine beside the native kernel: W1 updates per second of processor time, in node and here in turn.

It needs node with relaxed SIMD, that of the dev extra.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
RUNS, ROUNDS = 512, 3


def main() -> None:
    from test_web_engine import W1, in_node, isas, native

    for isa, _ in isas():
        for how, slots in (("one group, refilled", RUNS), ("in step, as the page", 0)):
            ratios = []
            for _ in range(ROUNDS):
                began = time.process_time()
                ours = int(np.sum(native(W1, "baseline", range(RUNS)).steps)) / (time.process_time() - began)
                *_, told = in_node([W1, W1], isa, range(RUNS), slots=slots, steps=100)  # compiled in the first
                theirs = sum(record["steps"] for record in told["records"]) / told["seconds"]
                ratios.append((theirs / ours, ours, theirs))
            ratio, ours, theirs = sorted(ratios)[ROUNDS // 2]
            print(json.dumps({"module": isa, "networks": how, "native_baseline": round(ours), "web": round(theirs),
                              "ratio": round(ratio, 2)}))


if __name__ == "__main__":
    main()
