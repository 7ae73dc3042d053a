"""Slots spread over several devices give the records of one; here the devices are parts of a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import paritylab as pl
from paritylab.storage.records import COLUMNS

SETUP = pl.Setup(pl.Parity(10, 2), pl.Learner(pl.MLP(4), batch=8), pl.Protocol(300, eval_size=64))
RUNS = 150  # more than there are slots, so that some enter while others train

SCRIPT = """
import json, sys
import jax, paritylab as pl
from paritylab.storage.records import COLUMNS
assert len(jax.devices()) == 3
records = pl.sweep([pl.Setup.from_json(sys.argv[1])], int(sys.argv[2]), engine="jax")[0].records
print(json.dumps({name: getattr(records, name).tolist() for name in COLUMNS}))
"""


@pytest.mark.long
def test_three_devices_give_the_records_of_one() -> None:
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_force_host_platform_device_count=3"]
    environment = {**os.environ, "XLA_FLAGS": " ".join(flags)}
    command = [sys.executable, "-c", SCRIPT, SETUP.to_json(), str(RUNS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    spread = json.loads(done.stdout)
    alone = pl.sweep([SETUP], RUNS, engine="jax")[0].records
    assert 0 < np.sum(alone.status == 0) < RUNS
    for name in COLUMNS:
        np.testing.assert_array_equal(np.asarray(spread[name], getattr(alone, name).dtype), getattr(alone, name))
