"""Problems put together from targets, laws and stages: what is drawn, what it is labelled, what it is called."""

import itertools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lengths import long_but

import paritylab as pl
from paritylab import laws, rng
from paritylab.engines.gradient import make_orders
from paritylab.setups.problems import bits, draws, functions, targets

PROBLEMS = {
    "parity": pl.Problem(40, [1, 35]),
    "sum": pl.Problem(40, pl.Sum([(0.5, (0, 39)), (-1.5, (2,))])),
    "sign": pl.Problem(40, pl.Sum([(0.5, (0, 39)), (-0.25, (2,)), (0.1, ())], sign=True), scale=2.0),
    "table": pl.Problem(40, pl.Table((33, 0, 7), functions.named("majority:3"))),
    "staircase": pl.Problem(20, "staircase:3", noise=0.1),
    "biased": pl.Problem(40, "parity:3", laws.Biased([0.1 + 0.02 * j for j in range(40)])),
    "mixture": pl.Problem(40, "parity:3", "mixture:0.2,biased:0.9,active:5"),
    "pairs": pl.Problem(40, "parity:3", laws.Pairs([(0, 39), (0, 5)], -0.5, laws.Biased(0.7))),
    "permuted": pl.Problem(3, [0], laws.Permuted((2, 0, 1), laws.Biased([0.1, 0.5, 0.9]))),
    "elsewhere": pl.Problem(40, "parity:3", "biased:0.9", evaluation="uniform"),
    "tasks": pl.multitask(30, tasks=5, k=2, alpha=1.5, unions=[(0, 1)], solved=[0, 5]),
    "composed": pl.Problem(9, pl.Tasks([(3,), (4,), (3, 4)], controls=[(0,), (2,), (0, 2)])),
    "outputs": pl.Problem(9, pl.Outputs([(3,), (4, 5)], counted=(1, 0.25))),
    "in turn": pl.Problem(9, pl.Tasks([(3,), (4,), (3, 4)], in_turn=True), scale=5.0),
    "staged": pl.Problem(40, [0, 1], stages=[pl.Stage(10, "biased:0.9", slide=True), pl.Stage(20, lr=0.5, batch=3),
                                             pl.Stage(30, noise=0.25)]),
    "sample": pl.Problem(40, "majority:5", "biased:0.3", sample=50, short_last=True),
}


# --- identity -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_comes_back_from_its_json(problem):
    setup = pl.Setup(problem)
    again = pl.Setup.from_json(setup.to_json())
    assert again == setup
    assert again.id == setup.id
    assert again.problem == problem


def test_different_problems_have_different_ids():
    assert len({pl.Setup(problem).id for problem in PROBLEMS.values()}) == len(PROBLEMS)


def test_a_short_last_batch_is_another_setup():
    assert pl.Setup(pl.Parity(30, 3, sample=9, short_last=True)).id != pl.Setup(pl.Parity(30, 3, sample=9)).id


@pytest.mark.parametrize(("make", "message"), [
    (lambda: pl.Problem(4, "majority:5"), "in 0..3"),
    (lambda: pl.Problem(4, "majorty:3"), "did you mean 'majority'"),
    (lambda: pl.Problem(4, [0], "biassed:0.3"), "did you mean"),
    (lambda: pl.Problem(4, [0], "biased:1.3"), "must be a probability"),
    (lambda: pl.Problem(4, [0], "biased:0.1,0.2"), "needs 4 of them"),
    (lambda: pl.Problem(4, [0], "mixture:0.3"), "mixture:RHO,LAW"),
    (lambda: pl.Problem(4, [0], "active:5"), "in 0..3"),
    (lambda: pl.Problem(4, [0], laws.Pairs([(0, 1), (2, 1)], 0.5)), "in no other pair"),
    (lambda: pl.Problem(4, [0], laws.Permuted((0, 1), "uniform")), "has 4 places"),
    (lambda: pl.Problem(4, [0], stages=[pl.Stage(5), pl.Stage(5)]), "after the one before"),
    (lambda: pl.Problem(4, [0], sample=5, stages=[pl.Stage(5, "biased:0.3")]), "drawn once"),
    (lambda: pl.Problem(4, [0], scale=0), "scale must not be 0"),
    (lambda: pl.Table((0, 1), [1, 1, 1]), "has 4 values"),
    (lambda: pl.Table((0, 0), [1, 1, 1, 1]), "distinct"),
    (lambda: pl.Table(range(21), "0"), "1 to 20 bits"),
    (lambda: pl.Tasks([(0, 2)]), "behind their control bits"),
    (lambda: pl.Tasks([(2, 3), (3,)], weights=[1]), "as many weights"),
    (lambda: pl.Tasks([(2, 3), (3,)], controls=[(0,)]), "2 tasks need as many lists of controls, not 1"),
    (lambda: pl.Tasks([(2, 3), (3,)], controls=[(0, 1), (1, 0)]), "different tasks must have different controls"),
    (lambda: pl.Tasks([(2, 3), (3,)], controls=[(0,), ()]), "at least one position"),
    (lambda: pl.Tasks([(2, 3), (3,)], controls=[(0,), (4,)]), "behind their control bits, from 5 on"),
    (lambda: pl.Outputs([]), "at least one output"),
    (lambda: pl.Outputs([(0,), (1,)], counted=(1,)), "2 outputs need as many shares counted"),
    (lambda: pl.Outputs([(0,), (1,)], counted=(1, 1.5)), "from 0 to 1 and not all 0"),
    (lambda: pl.Problem(4, pl.Outputs([(0,), (1,)], counted=(1, 0.5)), sample=9, short_last=True), "of one size"),
    (lambda: pl.Tasks([(2, 3), (3,)], controls=3), "controls must be lists of positions"),
    (lambda: pl.Tasks([(2, 3), (3,)], [1, 2], in_turn=True), "by their weights or come in turn, not both"),
    (lambda: pl.multitask(5, 3, 2, overlap="disjoint"), "need n of at least 6"),
    (lambda: pl.multitask(3, 4, 2), "hardly 4 different"),
    (lambda: pl.Parity(5, 2, short_last=True), "finite sample"),
    (lambda: pl.Parity(5, support="any"), "'random' with k"),
    (lambda: pl.Setup(pl.Problem(4, [0], stages=[pl.Stage(5, batch=33)])), "at most the Learner's 32"),
    (lambda: pl.Stage(0), "until must be"),
])
def test_a_mistake_is_said_in_a_line(make, message):
    with pytest.raises(pl.InvalidInput, match=message):
        make()


# --- what is drawn ------------------------------------------------------------------------------------------------


def one_by_one(law, key, n, first, count, stride):
    """Inputs by the definition, one bit at a time."""
    words = -(-n // 32)
    parts = law.components(n)
    rows = []
    for e in range(first, first + count):
        numbers = jnp.arange(e * stride, (e + 1) * stride, dtype=jnp.uint32)
        a, b = (np.asarray(part).astype(object) for part in draws.words_at(key, numbers))
        choice, share, chosen = int(a[words] ^ b[words]) / 2**32, 0.0, parts[-1][1]
        for weight, component in reversed(parts):
            share += weight
            if choice < 1 - share + weight and choice >= 1 - share:
                chosen = component
        x = []
        for j in range(n):
            digits = []
            for i in range(16):
                word = int(a[j // 32] ^ b[j // 32]) if i == 0 else murmur(int(a[j // 32]) + i * (int(b[j // 32]) | 1))
                digits.append(1 - (word >> (j % 32) & 1))
            number = int("".join(map(str, digits)), 2)
            x.append(-1 if number < chosen.chances[j] else 1)
        for i, j in chosen.copies:
            x[j] *= x[i]
        rows.append(x)
    return np.array(rows)


def murmur(x):
    x %= 2**32
    x = (x ^ x >> 16) * 0x85EBCA6B % 2**32
    x = (x ^ x >> 13) * 0xC2B2AE35 % 2**32
    return x ^ x >> 16


@pytest.mark.parametrize("name", long_but(["biased", "mixture", "pairs", "permuted"], "mixture", "pairs"))
def test_inputs_are_drawn_as_defined(name):
    problem, key = PROBLEMS[name], jax.random.key(5)
    drawn = problem.signs(problem.draw(key, 40))
    expected = one_by_one(problem.inputs, key, problem.n, 0, 40, problem.words + 3)
    np.testing.assert_array_equal(drawn, expected)
    np.testing.assert_array_equal(problem.signs(problem.draw_block(key, 3, 8)),
                                  one_by_one(problem.inputs, key, problem.n, 24, 8, problem.words + 3))


def test_without_bias_words_are_those_of_a_parity():
    key = jax.random.key(1)
    words = pl.Parity(40, 3).draw(key, 20)
    for law in ("uniform", "biased:0.5"):
        np.testing.assert_array_equal(pl.Problem(40, [0], law).draw(key, 20), words)


def centred(law, n, count, seed):
    problem = pl.Problem(n, [0], law)
    x = np.asarray(problem.signs(problem.draw(jax.random.key(seed), count)), np.float64)
    p = np.array([1 - chance / 2**16 for chance in problem.inputs.components(n)[0][1].chances])
    return (x - (2 * p - 1)) / np.sqrt(4 * p * (1 - p))


@pytest.mark.long
def test_biased_inputs_are_independent():
    """Means of all products of up to three centred inputs of 10 (175 tests at 5.5 sigma: false alarms below 1e-5)."""
    count = 2**18
    z = centred(laws.Biased([0.3, 0.7, 0.1, 0.9, 0.45, 0.55, 0.2, 0.8, 0.6, 0.25]), 10, count, 7)
    for size in (1, 2, 3):
        for chosen in itertools.combinations(range(10), size):
            moment = z[:, chosen].prod(axis=1)
            assert abs(moment.mean()) < 5.5 * moment.std() / math.sqrt(count), chosen


def test_pairs_are_correlated_as_asked():
    """E x_i x_j within 5 standard errors (false alarms 6e-7)."""
    count = 2**16
    problem = pl.Problem(6, [0], laws.Pairs([(0, 1), (2, 5)], -0.3))
    x = np.asarray(problem.signs(problem.draw(jax.random.key(0), count)))
    for i, j in itertools.combinations(range(6), 2):
        expected = -0.3 if (i, j) in ((0, 1), (2, 5)) else 0.0
        assert abs((x[:, i] * x[:, j]).mean() - expected) < 5 / math.sqrt(count)


def test_the_upper_half_of_a_product_is_that_of_64_bits():
    words = np.random.default_rng(0).integers(0, 2**32, 1000, np.uint64)
    for b in (1, 7, 2**16, 2**31 - 1, 123456789):
        np.testing.assert_array_equal(draws.high_word(jnp.asarray(words.astype(np.uint32)), b), words * b >> 32)


# --- targets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["majority:5", "mod:3,6", "tribes:2,3", "address:2", "random:7,3", "staircase:4",
                                  "leap:1,3", "parity:6"])
def test_named_targets_have_their_values(spec):
    values = functions.named(spec)
    size = len(values).bit_length() - 1
    places = tuple(np.random.default_rng(1).permutation(40)[:size].tolist())
    target = targets.target(spec, places)
    x = np.ones((2**size, 40), np.float32)
    x[:, places] = functions.cube(size)
    problem = pl.Problem(40, target)
    np.testing.assert_allclose(problem.labels(bits.pack(jnp.asarray(x)), problem.mask), values)


def test_the_sign_of_zero_is_plus_one_and_labels_are_scaled():
    problem = pl.Problem(2, pl.Sum([(1.0, (0,)), (1.0, (1,))], sign=True), scale=3.0)
    packed = bits.pack(jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]))
    assert problem.labels(packed, problem.mask).tolist() == [3.0, 3.0, -3.0]


@pytest.mark.long
def test_tasks_are_drawn_by_weight_and_evaluated_in_turn():
    """Frequencies within 5 standard errors (false alarms 4e-6)."""
    problem, count = pl.multitask(30, tasks=35, k=2, alpha=1.0, seed=2), 2**16
    drawn = problem.draw(jax.random.key(3), count)
    x = np.asarray(problem.signs(drawn))
    controls = x[:, :35] < 0
    assert (controls.sum(axis=1) == 1).all()
    task = controls.argmax(axis=1)
    shares = np.array(problem.target.weights) / sum(problem.target.weights)
    assert np.all(abs(np.bincount(task, minlength=35) / count - shares) < 5 * np.sqrt(shares / count))
    supports = [list(support) for support in problem.target.supports]
    expected = [x[i, supports[t]].prod() for i, t in enumerate(task[:500])]
    np.testing.assert_array_equal(problem.labels(drawn, problem.mask)[:500], expected)
    turn = np.asarray(problem.signs(problem.draw_block(jax.random.key(0), 2, 50)))[:, :35].argmin(axis=1)
    np.testing.assert_array_equal(turn, (100 + np.arange(50)) % 35)


def test_composed_tasks_have_several_controls_on_and_those_in_turn_equal_shares():
    tasks = pl.Tasks([(40, 41), (42,), (40, 41, 42)], controls=[(0,), (35,), (0, 35)], in_turn=True)
    problem = pl.Problem(45, tasks)
    drawn = problem.draw(jax.random.key(3), 100)
    x, y = np.asarray(problem.signs(drawn)), np.asarray(problem.labels(drawn, problem.mask))
    for e in range(100):
        assert np.flatnonzero(x[e, :36] < 0).tolist() == list(tasks.controls[e % 3])
        assert y[e] == x[e, list(tasks.supports[e % 3])].prod()
    assert np.array_equal(x[:7, :36], np.asarray(problem.signs(problem.draw_block(jax.random.key(0), 3, 7)))[:, :36])


def test_controls_that_go_without_saying_make_no_other_setup():
    same = pl.Tasks([(2, 3), (3, 4)], controls=[(0,), (1,)], in_turn=False)
    assert same == pl.Tasks([(2, 3), (3, 4)])
    assert pl.Setup(pl.Problem(5, same)).id == pl.Setup(pl.Problem(5, pl.Tasks([(2, 3), (3, 4)]))).id


# --- stages -------------------------------------------------------------------------------------------------------


def test_stages_end_where_they_say():
    problem = PROBLEMS["staged"]
    steps = [0, 9, 10, 19, 20, 29, 30]
    assert [float(problem.rate_at(jnp.int32(t))) for t in steps] == [1, 1, 0.5, 0.5, 1, 1, 1]
    assert [int(problem.batch_at(jnp.int32(t), 8)) for t in steps] == [8, 8, 3, 3, 8, 8, 8]
    own = np.uint32(7)
    assert [int(problem.flip_at(jnp.int32(t), own)) for t in steps] == [7, 7, 7, 7, 2**30, 2**30, 7]


def test_a_law_slides_into_the_next():
    """The mean of an input within 5 standard errors of the mixture's (false alarms 3e-6)."""
    problem, count = pl.Problem(4, [0], stages=[pl.Stage(100, "biased:1", slide=True)]), 2**14
    for step in (0, 25, 99, 100):
        x = problem.signs(problem.draw(jax.random.key(step), count, jnp.int32(step)))
        expected = 1 - min(step, 100) / 100
        assert abs(float(x.mean(axis=0)[2]) - expected) < 5 * math.sqrt(1 - expected**2) / math.sqrt(count) + 1e-9


# --- samples ------------------------------------------------------------------------------------------------------


def test_a_pass_ends_with_a_batch_of_what_is_left():
    setup = pl.Setup(pl.Parity(10, 2, sample=10, short_last=True), pl.Learner(batch=4))
    key = rng.run_keys(np.array([0]), np.array([0]))[0]
    orders = make_orders(setup, 7)
    for first in (0, 2, 5):
        order = np.asarray(orders(key, jnp.int32(first)))
        counts = [int(setup.problem.batch_at(jnp.int32(first + i), 4)) for i in range(7)]
        assert counts == [[4, 4, 2][(first + i) % 3] for i in range(7)]
        start = -first % 3
        passed = np.concatenate([order[start + i][: counts[start + i]] for i in range(3)])
        assert sorted(passed.tolist()) == list(range(10))


def test_each_run_has_its_own_support():
    keys = rng.run_keys(np.zeros(2000, int), np.arange(2000))
    masks = pl.Parity(40, 3, support="random").masks(keys)
    set_bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")[:, :40]
    assert (set_bits.sum(axis=1) == 3).all()
    # Each position is chosen by 3/40 of the runs, within 5 standard errors (false alarms 2e-5).
    assert np.all(abs(set_bits.mean(axis=0) - 3 / 40) < 5 * math.sqrt(3 / 40 / 2000))


# --- runs ---------------------------------------------------------------------------------------------------------

SHORT = pl.Protocol(max_steps=400, eval_size=512)


def records(problem, protocol=SHORT, **learner):
    return pl.measure(problem, pl.Learner(**learner), protocol, runs=4, engine="jax", progress=False).records


@pytest.mark.long
def test_a_composed_parity_trains_as_a_parity():
    parity, composed = (records(p, network=pl.MLP(20)) for p in (pl.Parity(8, 2, noise=0.1),
                                                                 pl.Problem(8, [0, 1], noise=0.1)))
    for name in ("t_c", "status", "accuracy", "loss"):
        np.testing.assert_array_equal(getattr(parity, name), getattr(composed, name))


@pytest.mark.long
def test_a_run_is_solved_when_its_judged_tasks_are():
    every = pl.multitask(8, tasks=3, k=2, overlap="disjoint")
    first = replace(every, target=replace(every.target, solved=(0,)))
    learner = {"network": pl.MLP(32), "optimiser": pl.SGD(0.5)}
    both = [records(problem, pl.Protocol(2000, 5, 300), **learner) for problem in (every, first)]
    assert (both[0].t_c > 0).all()
    assert (both[1].t_c <= both[0].t_c).all()
    assert (both[1].t_c < both[0].t_c).any()
    assert (both[1].accuracy < 1).any()
    setup = pl.Setup(every, pl.Learner(**learner), pl.Protocol(eval_size=300))
    curves = pl.curves(setup, [0, 200, 2000], runs=range(4), engine="jax")
    assert curves.task_accuracy.shape == (4, 3, 3)
    np.testing.assert_allclose(curves.task_accuracy.mean(axis=2), curves.accuracy)
    np.testing.assert_allclose(curves.task_loss.mean(axis=2), curves.loss, rtol=1e-6)
    assert (curves.task_accuracy[:, -1] == 1).all()


def test_a_real_target_is_learned_within_a_tolerance():
    protocol = pl.Protocol(3000, 10, 256, within=0.5)
    found = records(pl.Problem(8, "staircase:2"), protocol, network=pl.MLP(32), loss="square", optimiser=pl.SGD(0.05))
    assert (found.t_c > 0).all()


def test_a_user_s_target_is_watched():
    with pytest.raises(pl.InvalidInput, match=r"target .*must return real numbers of shape"):
        pl.measure(pl.Problem(8, lambda x: x[:, :, None]), runs=1, progress=False)
    with pytest.raises(pl.InvalidInput, match=r"must return .* of shape \(32, 8\), as the target does, not"):
        pl.measure(pl.Problem(8, lambda x: x), runs=1, progress=False)
