"""The general engine: any network, loss and optimiser, compiled by JAX and vectorised over slots.

Each slot carries its own run: key, learning rate, target, noise, step. One compiled call advances all slots by several
checks; between calls finished runs leave and new ones enter, so nothing is recompiled while a sweep lasts. Where there
are several devices, each has an equal share of the slots and advances it without asking the others.
"""

from __future__ import annotations

import functools
import re
import time
from typing import Any, NamedTuple

import numpy as np

from paritylab.engines import backend, room
from paritylab.engines.evaluation import Evaluation
from paritylab.engines.slots import ACTIVE, EMPTY, Slots, entering, make_moves
from paritylab.engines.work import Outcomes, Queue, Rows
from paritylab.later import jax, jnp
from paritylab.memory import Part
from paritylab.setups.setup import Setup
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

CALL_SECONDS = 0.2
COMPILE_SECONDS = 3.0


class Compiled(NamedTuple):
    place: Any
    fresh: Any
    load: Any
    advance: Any
    finish: Any
    rows: int  # that finish takes


@functools.lru_cache(maxsize=32)
def compiled(program: Setup, slots: int) -> Compiled:
    """The compiled functions of one program and number of slots on each device."""
    protocol = program.protocol
    moves = make_moves(program)
    evaluation = Evaluation(program, slots)

    def load(state: Slots, where: Any, rows: Slots) -> Slots:
        return jax.tree.map(lambda old, new: old.at[where].set(new, mode="drop"), state, moves.fresh(rows))

    def verdict(state: Slots, finite: Any, passed: Any) -> tuple[Any, Any]:
        """Status and streak of slots after a check that they passed or not."""
        streak = jnp.where(passed, state.streak + 1, 0)
        status = jnp.where(state.step >= state.max_steps, CENSORED, ACTIVE)
        status = jnp.where(streak >= protocol.consecutive, SOLVED, status)
        return jnp.where(finite, status, DIVERGED), streak

    def judge(state: Slots) -> Slots:
        """Give every active slot its status after a check; one that has ended keeps its streak of before."""
        active = state.status == ACTIVE
        finite = jax.vmap(all_finite)(state.params)
        status, streak = verdict(state, finite, evaluation.passed(state, active & finite))
        return state._replace(
            streak=jnp.where(active & (status == ACTIVE), streak, state.streak),
            status=jnp.where(active, status, state.status),
        )

    def advance(state: Slots, checks: Any, quota: Any) -> tuple[Slots, Any, Any]:
        """At most ``checks`` checks, fewer once ``quota`` slots have finished; also the checks and updates done."""
        before = state.step

        def going(carry: Any) -> Any:
            i, state = carry
            return (i < checks) & ((state.status >= 0).sum() < quota) & jnp.any(state.status == ACTIVE)

        def body(carry: Any) -> Any:
            i, state = carry
            return i + 1, judge(moves.until_check(state))

        done, state = jax.lax.while_loop(going, body, (jnp.int32(0), state))
        return state, done[None], state.step - before

    def finish(state: Slots, where: Any) -> tuple[Slots, Any, Any, Any]:
        """Full evaluation of the slots ``where``, which become empty.

        The check that ended a run may have been rounded otherwise. So that a Record does not contradict itself, its
        status is that of the evaluation which it shows; a run that is not solved by it goes on.
        """
        chosen = jax.tree.map(lambda leaf: leaf[where], state)
        passed, accuracy, mean_loss = evaluation.full(chosen)
        finite = chosen.status != DIVERGED
        status, streak = verdict(chosen, finite, passed & finite)
        chosen = chosen._replace(status=status, streak=streak)
        left = state._replace(
            status=state.status.at[where].set(jnp.where(status == ACTIVE, ACTIVE, EMPTY)),
            streak=state.streak.at[where].set(streak),
        )
        return left, chosen, accuracy, mean_loss

    if len(jax.local_devices()) == 1:
        place, out, shared = (lambda tree: tree), None, advance
    else:
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        mesh = Mesh(np.array(jax.local_devices()), ("slots",))
        apart, same = PartitionSpec("slots"), PartitionSpec()
        out = NamedSharding(mesh, apart)
        place = functools.partial(jax.device_put, device=out)
        shared = jax.shard_map(advance, mesh=mesh, in_specs=(apart, same, same), out_specs=apart, check_vma=False)
    return Compiled(
        place=place,
        fresh=moves.fresh,
        load=jax.jit(load, donate_argnums=0, out_shardings=out),
        advance=jax.jit(shared, donate_argnums=0),
        finish=jax.jit(finish, donate_argnums=0, out_shardings=(out, None, None, None)),
        rows=evaluation.rows,
    )


def accurate_products() -> Any:
    """Matrix products as accurate as float32: by default a GPU rounds their factors to ten bits.

    Six products of bfloat16 parts are as accurate as float32 arithmetic, and several times faster on tensor cores.
    """
    return jax.default_matmul_precision("highest" if jax.default_backend() == "cpu" else "BF16_BF16_F32_X6")


def all_finite(params: Any) -> Any:
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)]
    return functools.reduce(jnp.logical_and, leaves)


def default_slots(program: Setup, runs: int) -> int:
    """Enough slots to keep each device busy, a power of two.

    On a CPU their number depends on the program alone: the shapes of a compiled program can decide how its sums are
    rounded, and a Record must not depend on how many runs were asked for. A GPU would waste too much on few runs.
    """
    leaves = jax.tree.leaves(jax.eval_shape(program.params, jax.random.key(0)))
    params = sum(leaf.size for leaf in leaves)
    work = 4 * params + program.learner.batch * (program.problem.n + params // max(program.problem.n, 1))
    if jax.default_backend() == "cpu":
        most = min(max(2**21 // work, 4), 32)
    else:
        share = -(-runs // len(jax.local_devices()))
        most = min(max(2**29 // work, 1), 2**14, 1 << max(share - 1, 0).bit_length())
    return 1 << (most.bit_length() - 1)


class JaxEngine:
    """The engine as others see it: it can train everything, everywhere."""

    name = "jax"
    arithmetic = 2
    """Version of its sums: one more where a change moves the last bits of records (engines/arithmetic.py)."""
    compiles = True
    side_by_side = False
    records_curves = True

    def absence(self) -> str | None:
        return None

    def refusal(self, setup: Setup) -> str | None:
        return None

    def first_choice(self) -> bool:
        return True

    def label(self) -> str:
        if backend.is_cpu():
            return self.name
        return "jax_" + re.sub(r"\W+", "_", jax.devices()[0].device_kind)

    def parts(self, program: Setup, runs: int, threads: int | None) -> dict[str, Part]:
        return room.jax_parts(program, default_slots(program, runs)) if jax.default_backend() == "cpu" else {}

    def pool(
        self, program: Setup, runs: int, threads: int | None = None, slots: int | None = None, keep_params: bool = False
    ) -> JaxPool:
        return JaxPool(program, slots or default_slots(program, runs), keep_params)

    def tracer(
        self, queue: Queue, points: np.ndarray, train: bool, keep_params: bool, threads: int | None,
        stop: float | None = None,
    ) -> None:
        return None  # it records runs of several Setups together: see curves.py


class JaxPool:
    """Slots of one program, so many on each of JAX's devices."""

    def __init__(self, program: Setup, slots: int, keep_params: bool = False) -> None:
        self._devices = len(jax.local_devices())
        self.slots = slots * self._devices
        self.model_steps = 0
        self._keep = keep_params
        self._program = program
        self._compiled = compiled(program, slots)
        self._checks = 1
        self._wasted = 0.0
        self._state = self._compiled.place(self._blank())
        self._status = np.full(self.slots, EMPTY)

    @property
    def room(self) -> int:
        return int(np.sum(self._status == EMPTY))

    @property
    def busy(self) -> bool:
        return self.room < self.slots

    def _blank(self) -> Slots:
        words = self._program.problem.words
        rows = Rows(
            tag=np.zeros(self.slots, np.int64),
            key=np.zeros((self.slots, 2), np.uint32),
            lr=np.zeros(self.slots, np.float32),
            noise=np.zeros(self.slots, np.float32),
            flip=np.zeros(self.slots, np.uint32),
            mask=np.zeros((self.slots, words), np.uint32),
            max_steps=np.zeros(self.slots, np.int64),
        )
        shapes = jax.eval_shape(self._compiled.fresh, entering(self._program, rows, self.slots))
        blank = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
        return blank._replace(status=np.full(self.slots, EMPTY, np.int32))

    def load(self, rows: Rows) -> None:
        where = np.flatnonzero(self._status == EMPTY)[: len(rows)]
        nowhere = np.full(self.slots - len(where), self.slots)
        target = np.concatenate([where, nowhere]).astype(np.int32)
        self._state = self._compiled.load(self._state, target, entering(self._program, rows, self.slots))
        self._status[where] = ACTIVE

    def advance(self, more: bool) -> Outcomes:
        quota = max(1, self.slots // self._devices // 8) if more else self.slots + 1
        start = time.perf_counter()
        with accurate_products():
            arguments = (self._state, np.int32(self._checks), np.int32(quota))
            self._state, checks, updates = self._compiled.advance(*arguments)
        self.model_steps += int(np.asarray(updates).sum(dtype=np.int64))
        seconds = time.perf_counter() - start
        if int(np.max(checks)) == self._checks and seconds < CALL_SECONDS / 2:
            self._checks *= 2
        elif seconds > CALL_SECONDS:
            self._checks = max(1, self._checks // 2)
        self._status = np.array(self._state.status)
        outcomes = self._collect(np.flatnonzero(self._status >= 0))
        self._thin(seconds, more)
        return outcomes

    def _thin(self, seconds: float, more: bool) -> None:
        """Move the last runs into fewer slots once the empty ones have cost more than compiling anew would."""
        left = int(np.sum(self._status == ACTIVE))
        if jax.default_backend() == "cpu" or more or left == 0 or left > self.slots // 16:
            self._wasted = 0.0
            return
        self._wasted += seconds
        if self._wasted < COMPILE_SECONDS:
            return
        where = np.flatnonzero(self._status == ACTIVE)
        share = 1 << (-(-left // self._devices) - 1).bit_length()
        self.slots, self._wasted = share * self._devices, 0.0
        where = np.resize(where, self.slots)
        state = jax.tree.map(lambda leaf: leaf[where], self._state)
        self._status = np.where(np.arange(self.slots) < left, ACTIVE, EMPTY)
        self._compiled = compiled(self._program, share)
        self._state = self._compiled.place(state._replace(status=self._status.astype(np.int32)))

    def _collect(self, where: np.ndarray) -> Outcomes:
        """The outcomes of the slots ``where``, which become empty; a few at a time, so that one shape is compiled."""
        size = self._compiled.rows
        parts = [self._finish(where[i : i + size], size) for i in range(0, len(where), size)]
        if not parts:
            return Outcomes(Records.empty())
        trees = [part.params for part in parts]
        params = jax.tree.map(lambda *leaves: np.concatenate(leaves), *trees) if self._keep else None
        return Outcomes(Records.concatenate([part.records for part in parts]), params)

    def _finish(self, where: np.ndarray, size: int) -> Outcomes:
        count = len(where)
        padded = np.resize(where, size).astype(np.int32)
        with accurate_products():
            self._state, chosen, accuracy, mean_loss = self._compiled.finish(self._state, padded)
        ended = np.asarray(chosen.status)[:count] != ACTIVE
        self._status[where] = np.where(ended, EMPTY, ACTIVE)
        columns = (chosen.tag, chosen.status, chosen.step, accuracy, mean_loss)
        tags, status, steps, accuracy, mean_loss = (np.asarray(column)[:count][ended] for column in columns)
        records = Records(tags, status, np.where(status == SOLVED, steps, -1), steps, accuracy, mean_loss)
        params = jax.tree.map(lambda leaf: np.asarray(leaf[:count])[ended], chosen.params) if self._keep else None
        return Outcomes(records, params)
