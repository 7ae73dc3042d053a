"""Faults of the disk: full, read-only, failing, damaged, from the future, shared, with a clock that jumps."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import polars
from faults.bench import LABEL, RUNS, SETUP, Bench, Outcome, compared, differing, records
from faults.processes import moment

from paritylab.storage.store import Store

HALF = ["--runs", str(RUNS // 2)]
DISK = 2**22  # bytes


class Unavailable(Exception):
    """This machine does not allow what a scenario needs."""


@contextlib.contextmanager
def mounted(path: Path, options: str) -> Iterator[None]:
    """A small file system in memory at a path; for root only."""
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True)
    if made.returncode:
        raise Unavailable(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def full_disk(moments: Random, folder: Path, bench: Bench, *options: str) -> Outcome:
    """A disk that is full at one moment or another, then has some more room, then enough."""
    outcome = Outcome()
    with mounted(folder / "disk", f"size={DISK}"):
        out, ballast = folder / "disk" / "out", folder / "disk" / "ballast"
        free = 0
        for _ in range(3):
            free += int(2 ** moments.uniform(11, 17))
            ballast.write_bytes(b"")
            room = os.statvfs(folder / "disk")
            ballast.write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - free)))
            child = bench.start(out, *options)
            status = child.wait()
            outcome.faults += status == 2
            outcome.expect(status == 0 or child.refused("No space left on device"), f"status {status}: {child.err}")
            outcome.left += len(list(out.rglob(".*.tmp"))) + child.orphans()
            outcome.different += differing(records(out), bench.undisturbed)
            if status == 0:
                break
        ballast.unlink()
        bench.complete(out, outcome=outcome)
        outcome += compared(out, bench.undisturbed)
    return outcome


def full_disk_with_workers(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """The same with two worker processes, which go when their command does."""
    return full_disk(moments, folder, bench, "--workers", "2")


def no_room_for_a_file(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """A limit on the size of files: what the operating system refuses without any mount."""
    outcome = Outcome()
    limit = moments.randint(0, 30_000)
    child = bench.start(folder, first=f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))")
    status = child.wait()
    outcome.faults += 1
    outcome.expect(status == 0 or child.refused("File too large"), f"status {status}: {child.err}")
    outcome.left += len(list(folder.rglob(".*.tmp")))
    outcome.different += differing(records(folder), bench.undisturbed)
    bench.complete(folder, outcome=outcome)
    outcome += compared(folder, bench.undisturbed)
    return outcome


def read_only_disk(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """What is stored can be asked for; more cannot be added, until the disk is writable again."""
    outcome = Outcome(faults=1)
    with mounted(folder / "disk", f"size={DISK}"):
        out = folder / "disk" / "out"
        bench.complete(out, *HALF, outcome=outcome)
        remount = ["mount", "-o", "remount,{}", str(folder / "disk")]
        subprocess.run([part.format("ro") for part in remount], check=True)
        bench.complete(out, *HALF, outcome=outcome)
        child = bench.start(out)
        child.wait()
        outcome.expect(child.refused("Read-only file system"), child.err)
        outcome.different += differing(records(out), bench.undisturbed)
        subprocess.run([part.format("rw") for part in remount], check=True)
        bench.complete(out, outcome=outcome)
        outcome += compared(out, bench.undisturbed)
    return outcome


FAILING = """
import os
calls, real = [0], os.{call}
def failing(*arguments):
    calls[0] += 1
    if calls[0] {when}:
        raise OSError({code}, os.strerror({code}))
    return real(*arguments)
os.{call} = failing
"""


def failing_disk(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Calls that fail once or from some moment on."""
    outcome = Outcome(faults=1)
    call = moments.choice(["fsync", "replace", "open"])
    when = moments.choice(["==", ">="]) + str(moments.randint(1, 30))
    code = moments.choice([errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
    child = bench.start(folder, first=FAILING.format(call=call, when=when, code=code))
    status = child.wait()
    said = child.refused(os.strerror(code)) or (status == 0 and only_notes(child.err))
    outcome.expect(said, f"{call} {when}, status {status}: {child.err}")
    outcome.left += len(list(folder.rglob(".*.tmp")))
    outcome.different += differing(records(folder), bench.undisturbed)
    bench.complete(folder, outcome=outcome)
    outcome += compared(folder, bench.undisturbed)
    return outcome


def only_notes(text: str) -> bool:
    return all(line.startswith("paritylab: note: ") for line in text.splitlines())


def filled(out: Path, bench: Bench, moments: Random) -> list[Path]:
    """A store with a few blocks of what an undisturbed run ends with."""
    store, edges = Store(out / "store"), sorted(moments.sample(range(1, RUNS), 4))
    return [
        store.append(SETUP.id, SETUP.to_json(), LABEL, 0, bench.undisturbed.take(runs))
        for runs in np.split(np.arange(RUNS), edges)
    ]


def damaged_block(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """A block that was cut short, or with some bits flipped: it is reported, left alone and made again."""
    outcome = Outcome(faults=1)
    path = moments.choice(filled(folder, bench, moments))
    data = bytearray(path.read_bytes())
    if moments.random() < 0.3:
        del data[moments.randrange(len(data)) :]
    else:
        for place in moments.sample(range(len(data)), moments.randint(1, 8)):
            data[place] ^= 1 << moments.randrange(8)
    path.write_bytes(data)
    _made_again(path, "is damaged", folder, bench, outcome, mended=True)  # a block of the same runs takes its place
    return outcome


def newer_block(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """A block of a format to come, whole: it is reported, left alone, and its runs are done again."""
    outcome = Outcome(faults=1)
    old = moments.choice(filled(folder, bench, moments))
    stamp = {name: text for name, text in polars.read_parquet_metadata(old).items() if name.startswith("paritylab")}
    buffer = io.BytesIO()
    polars.read_parquet(old).write_parquet(buffer, metadata=stamp | {"paritylab.format": str(moments.randint(3, 99))})
    digest = hashlib.blake2b(buffer.getvalue(), digest_size=16).hexdigest()
    path = old.with_name(f"{old.name[:-len('.parquet') - 32]}{digest}.parquet")
    old.unlink()
    path.write_bytes(buffer.getvalue())
    _made_again(path, "is in format", folder, bench, outcome)
    return outcome


def _made_again(path: Path, why: str, folder: Path, bench: Bench, outcome: Outcome, mended: bool = False) -> None:
    data = path.read_bytes()
    child = bench.start(folder)
    status = child.wait()
    said = child.err.startswith("paritylab: note: not used: ") and why in child.err and child.err.count("\n") == 1
    outcome.expect(status == 0 and said, f"status {status}: {child.err}")
    if path.is_file() and path.read_bytes() == data:
        path.unlink()
    else:
        outcome.expect(mended, f"{path.name} was changed")
    outcome += compared(folder, bench.undisturbed)


def damaged_setup(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """The file with the Setups cut short, flipped or gone: it is reported, left alone, and they are written anew."""
    outcome = Outcome(faults=1)
    for path in filled(folder, bench, moments)[1:]:
        path.unlink()  # so that there is something to add
    (file,) = (folder / "store" / "setups").iterdir()
    data = bytearray(file.read_bytes())
    kind = moments.choice(["cut", "flipped", "gone"])
    if kind == "cut":
        del data[moments.randrange(len(data)) :]
    else:
        data[moments.randrange(len(data))] ^= 1 << moments.randrange(8)
    file.unlink()
    if kind != "gone":
        file.write_bytes(data)
    child = bench.start(folder)
    status = child.wait()
    said = child.err.count("\n") == 1 and f"{file.name} is damaged" in child.err if kind != "gone" else not child.err
    outcome.expect(status == 0 and said, f"{kind}, status {status}: {child.err}")
    file.unlink(missing_ok=True)  # it was left alone, or the same one took its place
    store = Store(folder / "store")
    if not store.texts():  # it had the same name
        store.append(SETUP.id, SETUP.to_json(), LABEL, 0, bench.undisturbed.take(np.array([0])))
    outcome.expect(store.texts() == {SETUP.id: SETUP.to_json()}, "the Setup was not written anew")
    outcome += compared(folder, bench.undisturbed)
    return outcome


def shared_store(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Two commands that write the same runs and others at once; one may be killed."""
    outcome = Outcome(faults=1)
    first, second = bench.start(folder), bench.start(folder, *moments.choice([[], HALF]))
    if moments.random() < 0.5:
        moment(moments, bench, second, folder)
        second.send(signal.SIGKILL)
    for child in (first, second):
        status = child.wait()
        outcome.expect(status in (0, -signal.SIGKILL) and not child.err, f"status {status}: {child.err}")
    outcome += compared(folder, bench.undisturbed)
    return outcome


JUMPING = """
import os, random, time
jumps, real = random.Random({seed}), time.time
time.time = lambda: real() + jumps.choice([-1, 0, 1]) * jumps.choice([60, 3600, 86400, 10 * 365 * 86400])
sync = os.fsync
def slow(descriptor):
    sync(descriptor)
    if jumps.random() < 0.1:
        os.utime(descriptor, (0, 0))  # as if the clock of the disk had jumped since the file was made
    time.sleep(0.02)
os.fsync = slow
"""


def jumping_clock(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Two commands in one store whose clocks jump by up to ten years, while each has temporary files open."""
    outcome = Outcome(faults=1)
    children = [bench.start(folder, *HALF[:i], first=JUMPING.format(seed=moments.randrange(2**32))) for i in (0, 2)]
    for child in children:
        status = child.wait()
        outcome.expect(status == 0 and not child.err, f"status {status}: {child.err}")
    bench.complete(folder, outcome=outcome)
    outcome += compared(folder, bench.undisturbed)
    return outcome
