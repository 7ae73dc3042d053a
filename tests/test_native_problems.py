"""Problems that are put together, on the native engine: what is drawn, what is learned, how it is judged."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lengths import long_but
from native_problems import PROBLEMS
from same_curves import assert_same

import paritylab as pl
from paritylab import laws, rng
from paritylab.engines import Job, final_params, lanes, room, warps
from paritylab.engines.configuration import Configuration
from paritylab.engines.evaluation import task_sizes
from paritylab.engines.gradient import make_step
from paritylab.engines.lanes import LanesPool
from paritylab.engines.starts import kernel
from paritylab.engines.work import Queue
from paritylab.errors import InvalidInput
from paritylab.setups.problems import Stage

pytestmark = pytest.mark.skipif(kernel() is None, reason="the native kernel was not built")
ISAS = kernel().supported_isas() if kernel() is not None else []
BATCH, EVALUATED = 70, 100
LEARNER = pl.Learner(pl.MLP(5), optimiser=pl.SGD(0.05), batch=6)


DRAWN = ("mixture of three", "pairs", "staged", "more tasks than inputs")


def drawn_by_jax(setup, row, step):
    """Packed inputs and labels of the examples of a step's batch that count, and of the evaluation sample."""
    problem, mask = setup.problem, row.mask[0]
    slot_key = jnp.asarray(row.key[0])
    (order, batch), flip = (setup.learner.batch,) * 2, row.flip[0]
    if problem.sample is None:
        key = jax.random.fold_in(rng.stream(slot_key, rng.DATA), step)
        drawn = problem.draw(key, batch, jnp.int32(step))
        labels = problem.labels(drawn, mask)
        words = jax.random.bits(jax.random.fold_in(rng.stream(slot_key, rng.LABELS), step), (batch,))
        labels = jnp.where(words < problem.flip_at(step, flip), -labels, labels)
    else:
        program = replace(setup.program, protocol=replace(setup.program.protocol, eval_every=64))
        made, make_sample = make_step(program)
        sample = make_sample(slot_key, flip, mask)
        first = step // made.block * made.block
        order = made.orders(slot_key, jnp.int32(first))[step - first]
        drawn, labels = sample[0][order], sample[1][order]
    count = int(problem.batch_at(jnp.int32(step), batch))
    key = jax.random.fold_in(rng.stream(slot_key, rng.EVALUATION), 0)
    judged = problem.draw_block(key, 0, EVALUATED)
    pairs = (drawn[:count], labels[:count]), (judged, problem.labels(judged, mask))
    return [(np.asarray(problem.signs(x, mask)), np.asarray(y)) for x, y in pairs]


@pytest.mark.parametrize("name", long_but(PROBLEMS, *DRAWN))
def test_examples_are_those_of_jax_to_the_bit(name):
    setup = pl.Setup(PROBLEMS[name], replace(LEARNER, batch=BATCH if PROBLEMS[name].sample is None else 6),
                     pl.Protocol(100, eval_size=EVALUATED))
    row = Queue([Job(setup, 3, np.array([11]))]).take(1)
    steps = (0, 7, 12, 29, 40)
    expected = [drawn_by_jax(setup, row, step) for step in steps]
    for isa in ISAS:
        for layout in ("lanes", "within", "deep", "tables"):
            pool = LanesPool(setup.program, 1, isa=isa, layout=layout)._pool
            for step, pairs in zip(steps, expected, strict=True):
                for evaluation, (x, y) in zip((False, True), pairs, strict=True):
                    key, mask = tuple(row.key[0].tolist()), row.mask[0].tolist()
                    got, labels = pool.examples(key, mask, int(row.flip[0]), step, evaluation)
                    minus = np.unpackbits(got.view(np.uint8), axis=1, bitorder="little")[:, : setup.problem.n]
                    signs = 1.0 - 2.0 * minus
                    np.testing.assert_array_equal(signs, x, f"{isa} {layout} {step} {evaluation}")
                    np.testing.assert_array_equal(labels, y, f"{isa} {layout} {step} {evaluation}")


def records(setup, runs, **options):
    """Records and final params of runs of unequal lengths, so that slots stand in different stages."""
    every = 1 if setup.problem.sample is None else 2
    jobs = [Job(replace(setup, protocol=replace(setup.protocol, max_steps=20 + 7 * i, eval_every=every)), 3,
                np.arange(runs)) for i in range(4)]
    found, params = final_params(jobs, engine="lanes", **options)
    columns = [getattr(found, name) for name in ("run", "status", "t_c", "steps", "accuracy", "loss")]
    return [column.tobytes() for column in columns], [np.asarray(leaf) for leaf in jax.tree.leaves(params)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_records_depend_neither_on_company_nor_on_the_instruction_set(name):
    protocol = pl.Protocol(100, eval_size=40, threshold=0.8, consecutive=2)
    setup = pl.Setup(PROBLEMS[name], replace(LEARNER, optimiser=pl.SGD(0.1), batch=9), protocol)
    together = records(setup, 13)
    for options in ({"threads": 2}, *({"isa": isa} for isa in ISAS if isa in ("avx2", "neon"))):
        other = records(setup, 13, **options)
        assert other[0] == together[0]
        assert all(np.array_equal(a, b) for a, b in zip(other[1], together[1], strict=True))
    every = 1 if setup.problem.sample is None else 2
    last = replace(setup, protocol=replace(setup.protocol, max_steps=41, eval_every=every))
    alone = [final_params([Job(last, 3, np.array([run]))], engine="lanes")[1] for run in range(3)]
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *alone)
    for a, b in zip(jax.tree.leaves(joined), together[1], strict=True):
        assert np.array_equal(a, b.reshape(4, 13, *b.shape[1:])[3, :3])


EVALUATIONS = {
    "tasks": pl.Setup(PROBLEMS["two tasks"], LEARNER),
    "many tasks": pl.Setup(PROBLEMS["many tasks"], LEARNER),
    "within": pl.Setup(PROBLEMS["sum"], replace(LEARNER, loss="square"), pl.Protocol(within=0.5)),
    "within, scaled": pl.Setup(PROBLEMS["product, scaled"], replace(LEARNER, loss="l1"), pl.Protocol(within=0.3)),
    "judged elsewhere": pl.Setup(PROBLEMS["judged elsewhere"], LEARNER),
    "leaky": pl.Setup(PROBLEMS["leaky"], LEARNER),
    "staged": pl.Setup(PROBLEMS["staged"], LEARNER),
    "sample of tasks": pl.Setup(PROBLEMS["sample of tasks"], LEARNER),
    "composed tasks": pl.Setup(PROBLEMS["composed tasks"], LEARNER),
    "sample of tasks in turn": pl.Setup(PROBLEMS["sample of tasks in turn"], LEARNER),
    "within on a sample": pl.Setup(PROBLEMS["sample of a law"], replace(LEARNER, loss="l1"), pl.Protocol(within=0.5)),
}


@pytest.mark.parametrize("name", long_but(EVALUATIONS, "many tasks", "within", "staged", "sample of tasks"))
def test_curves_are_those_of_jax_task_by_task(name):
    setup = EVALUATIONS[name]
    setup = replace(setup, protocol=replace(setup.protocol, eval_size=130))
    train = setup.problem.sample is not None
    native, other = (pl.curves(setup, steps=[0, 5, 20], runs=range(3), engine=engine, train=train)
                     for engine in ("lanes", "jax"))
    assert_same(native, other)
    assert (native.train_loss is None) == (not train)
    assert (native.task_loss is None) == (not setup.problem.tasks)
    if setup.problem.tasks:
        assert native.task_loss.shape == (3, 3, setup.problem.tasks)
        stopped = pl.curves(setup, steps=[0, 5, 20], runs=range(3), engine="lanes", stop=100.0) if train else native
        np.testing.assert_array_equal(stopped.task_loss[:, 0], native.task_loss[:, 0])


def solved_at(setup, run):
    """By its curve: the first check at which every judged task makes at most the errors it may."""
    points = np.arange(setup.protocol.eval_every, setup.protocol.max_steps + 1, setup.protocol.eval_every)
    curve = pl.curves(setup, steps=points.tolist(), runs=[run], engine="lanes")
    target, sizes = setup.problem.target, task_sizes(setup.protocol.eval_size, setup.problem.tasks)
    good = np.ones(len(points), bool)
    for task in target.judged:
        errors = np.round((1 - curve.task_accuracy[0, :, task]) * sizes[task])
        good &= errors <= setup.protocol.allowed_of(sizes[task])
    return points[good.argmax()] if good.any() else -1


@pytest.mark.parametrize("solved", [None, [1]])
def test_a_run_is_solved_when_each_judged_task_is(solved):
    tasks = pl.Tasks([(3, 4), (5,), (4, 6)], weights=(0.5, 0.4, 0.1), solved=solved)
    setup = pl.Setup(pl.Problem(7, tasks), pl.Learner(pl.MLP(16), optimiser=pl.SGD(0.3), batch=32),
                     pl.Protocol(600, 5, 64, threshold=0.9))
    found = final_params([Job(setup, 0, np.arange(6))], engine="lanes")[0]
    expected = [solved_at(setup, run) for run in range(6)]
    assert found.t_c.tolist() == expected
    assert max(expected) > 0
    other = final_params([Job(setup, 0, np.arange(6))], engine="jax")[0]
    assert np.abs(found.t_c - other.t_c).max() <= 20


RECORDED = ("table", "biased", "mixture", "two tasks", "staged", "polynomial", "short last", "leaky",
            "composed tasks", "more tasks than inputs")


@pytest.mark.parametrize("name", long_but(RECORDED, "staged"))
def test_records_are_those_of_jax(name):
    loss = "square" if name == "polynomial" else "hinge"
    learner = replace(LEARNER, optimiser=pl.SGD(0.01), loss=loss)
    setup = pl.Setup(PROBLEMS[name], learner, pl.Protocol(40, 10, 64))
    native, other = (final_params([Job(setup, 0, np.arange(20))], engine=engine)[0] for engine in ("lanes", "jax"))
    assert np.mean(native.t_c == other.t_c) >= 0.9
    same = native.t_c == other.t_c
    np.testing.assert_allclose(native.loss[same], other.loss[same], rtol=1e-3)
    assert np.abs(native.accuracy[same] - other.accuracy[same]).max() <= 2 / 64


def test_what_is_drawn_by_a_function_is_refused():
    def inputs(key, count, n):
        return jax.random.rademacher(key, (count, n), jnp.float32)

    for problem, words in ((pl.Problem(9, lambda x: x[:, 0]), "target by a function"),
                           (pl.Problem(9, (0, 1), inputs), "inputs by a function"),
                           (pl.Parity(9, 2, inputs=inputs), "inputs by a function")):
        assert words in (lanes.refusal(pl.Setup(problem, LEARNER)) or "")
    for problem in PROBLEMS.values():
        assert lanes.refusal(pl.Setup(problem, LEARNER)) is None
        assert warps.refusal(pl.Setup(problem, LEARNER)) is None


DAMAGE = {
    "stride": 4, "law": 2, "evaluation_law": -1, "target": "cube", "n": 0,
    "stages": [(10, 0, 0, -1, 6), (10, 0, 0, -1, 6)], "terms": [(1.0, np.array([1, 2, 3], np.uint32))],
    "places": [0, 70], "table": np.zeros(3, np.uint32), "leak": 5,
    "task_cumulative": np.array([3], np.uint32), "task_masks": np.zeros((3, 2), np.uint32), "task_allowed": [1, 2],
    "task_controls": np.ones((3, 2), np.uint32),
}
KINDS = {"terms": "sum", "places": "table", "table": "table", "leak": "mixture"}
TASKS = ("task_cumulative", "task_masks", "task_allowed", "task_controls", "control bits")
KINDS |= dict.fromkeys(TASKS, "many tasks")
MORE = ("stage law", "stage batch", "stage flip", "copies", "planes", "no law", "cumulative", "control bits")


@pytest.mark.parametrize("field", [*DAMAGE, *MORE])
def test_a_problem_that_does_not_hang_together_is_refused(field):
    problem = PROBLEMS[KINDS.get(field, "pairs")]
    configuration = Configuration.of(pl.Setup(problem, LEARNER).program)
    told = dict(configuration.problem or {})
    (cumulative, planes, always, copies, plain), *_ = told["laws"]
    told |= {
        "stage law": {"stages": [(10, 7, 0, -1, 6)]}, "stage batch": {"stages": [(10, 0, 0, -1, 7)]},
        "stage flip": {"stages": [(10, 0, 0, 2**32, 6)]}, "no law": {"laws": []},
        "copies": {"laws": [(cumulative, planes, always, [[(0, 40)]], plain)]},
        "planes": {"laws": [(cumulative, planes[:, :, :1].copy(), always, copies, plain)]},
        "control bits": {"task_controls": np.full((37, 2), 1 << 28, np.uint32)},  # the last of 61 inputs
        "cumulative": {"laws": [(np.array([5], np.uint32), planes, always, copies, plain)]},
    }.get(field) or {field: DAMAGE[field]}
    module = kernel()
    with pytest.raises((ValueError, TypeError)):
        module.Pool(**configuration.to_dict() | {"problem": module.Problem(**told)}, keep_params=False, threads=1)


def test_stages_change_neither_the_labels_nor_the_law_of_a_finite_sample():
    for stage in (Stage(10, noise=0.1), Stage(10, "biased:0.3"), Stage(10, batch=3)):
        with pytest.raises(InvalidInput, match="finite sample"):
            pl.Problem(9, (0, 1), sample=20, stages=[stage])


@pytest.mark.parametrize("isa", ISAS)
def test_a_sample_is_gone_through_in_random_orders(isa):
    """Of all sizes about which the sorting of random words branches."""
    for size in (1, 2, 5, 31, 64, 100, 1000, 8191, 8192, 30000):
        setup = pl.Setup(pl.Parity(20, 2, sample=size), replace(LEARNER, batch=size), pl.Protocol(100))
        pool = LanesPool(setup.program, 1, isa=isa, layout="within")._pool
        key = jax.random.wrap_key_data(np.array([5, 6], np.uint32))
        sample = np.asarray(jax.random.bits(jax.random.fold_in(jax.random.fold_in(key, rng.SAMPLE), 0), (size,)))
        for step in (0, 3):
            words = jax.random.bits(jax.random.fold_in(jax.random.fold_in(key, rng.ORDER), step), (size,))
            order = np.argsort(np.asarray(words), kind="stable")
            got, _ = pool.examples((5, 6), [3], 0, step, False)
            np.testing.assert_array_equal(got[:, 0], sample[order] & (2**20 - 1))


def test_negative_places_are_refused():
    configuration = Configuration.of(pl.Setup(PROBLEMS["table"], LEARNER).program)
    module = kernel()
    for places in ([-1], [-33, 1], list(range(21))):
        told = configuration.problem | {"places": places, "table": np.zeros(1, np.uint32)}
        with pytest.raises(ValueError):
            module.Pool(**configuration.to_dict() | {"problem": module.Problem(**told)}, keep_params=False, threads=1)


def test_memory_counts_what_a_problem_holds():
    table = pl.Table(tuple(range(20)), np.ones(2**20))
    parts = room.lanes_parts(pl.Setup(pl.Problem(30, table, "biased:0.3", sample=100), LEARNER).program, 100, 1)
    assert parts["numbers of the problem"].count > 2**15
    assert "numbers of the problem" not in room.lanes_parts(pl.Setup(pl.Parity(30, 3), LEARNER).program, 100, 1)


@pytest.mark.slow
@pytest.mark.long
def test_centred_inputs_of_a_law_are_independent():
    """Means, pairs and triples of standardised inputs over 2^22 examples.

    With n = 12 there are 298 of them, each asymptotically normal with variance 1 over the number of examples; six
    standard errors are exceeded by one with a probability below 298 * 2e-9 = 6e-7. Chances are multiples of 2^-16 here,
    so rounding adds nothing.
    """
    chances = np.array([45875, 19661, 1, 32768, 65535, 21845, 40000, 60000, 12345, 54321, 30001, 45875]) / 65536
    setup = pl.Setup(pl.Problem(12, (0, 1), laws.Biased(tuple(1 - chances))), LEARNER, pl.Protocol(eval_size=2**22))
    pool = LanesPool(setup.program, 1, layout="within")._pool
    words, _ = pool.examples((7, 8), [3], 0, 0, True)
    minus = (words >> np.arange(12, dtype=np.uint32)) & 1
    common = (chances > 0.001) & (chances < 0.999)
    centred = ((minus - chances) / np.sqrt(chances * (1 - chances))).astype(np.float64)
    error = 6 / np.sqrt(len(words))
    assert np.abs(centred.mean(0))[common].max() < error
    assert np.abs(minus.mean(0) - chances).max() < error
    kept = centred[:, common]
    for i in range(kept.shape[1]):
        for j in range(i):
            pair = kept[:, i] * kept[:, j]
            assert abs(pair.mean()) < error
            assert np.abs(pair @ kept[:, :j] / len(words)).max(initial=0) < error
