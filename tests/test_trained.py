"""Networks of measured runs, trained again: they are the ones that curves, the engines and the oracle have."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, lanes
from paritylab.running.merging import merge
from paritylab.storage.kept import KeptWarning
from paritylab.storage.records import DIVERGED
from paritylab.trained import params as arrays
from paritylab.trained import regenerating

built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
QUICK = pl.Protocol(eval_every=7, eval_size=200, max_steps=3000)


@pytest.fixture(scope="module")
def result() -> pl.Result:
    return pl.measure(pl.Parity(n=9, k=2), pl.Learner(pl.MLP(6), batch=8), QUICK, runs=24, engine="auto")


def test_the_moments_are_those_of_the_record(result):
    t_c = result.records.t_c
    moments = {"start": 0, "before": t_c // 2, "solved": t_c, "end": t_c, "after": 2 * t_c, 50: 50}
    for at, steps in moments.items():
        networks = result.networks(at=at)
        assert np.array_equal(networks.steps, np.broadcast_to(steps, t_c.shape))
        assert np.array_equal(networks.runs, np.arange(24))
        assert networks.exact


def test_several_moments_come_one_after_the_other(result):
    moments = ["after", "start", 40, "solved", "before"]
    networks = result.networks(range(4, 10), at=moments)
    assert networks.runs.tolist() == 5 * list(range(4, 10))
    for i, moment in enumerate(moments):
        alone = result.networks(range(4, 10), at=moment)
        part = networks[6 * i : 6 * i + 6]
        assert np.array_equal(part.steps, alone.steps)
        for name, leaf in alone.params.items():
            assert np.array_equal(part.params[name], leaf), (moment, name)
    with pytest.raises(pl.InvalidInput, match="at must be one or more of start"):
        result.networks(at=[])


def test_params_at_any_step_are_those_of_the_curves(result):
    chosen = [0, 3, int(result.records.t_c[2]), 1000]
    curve = pl.curves(result.setup, chosen, runs=range(24), weights=True)
    for point, step in enumerate(chosen):
        networks = result.networks(at=step)
        for name, leaf in arrays.named(curve.weights).items():
            assert np.array_equal(networks.params[name], leaf[:, point]), (step, name)


def test_params_at_the_end_are_those_that_training_ends_with(result):
    records, tree = engines.final_params([Job(result.setup, 0, np.arange(24))])
    assert records.digest == result.records.digest
    for name, leaf in arrays.named(tree).items():
        assert np.array_equal(result.networks(at="solved").params[name], leaf)


def test_one_run_is_the_same_in_any_company(result):
    some = result.networks([17, 3], at="after")
    assert some.runs.tolist() == [17, 3]
    alone = result.network(3, at="after")
    for name, leaf in alone.params.items():
        assert np.array_equal(leaf, some.params[name][1])


@pytest.mark.parametrize("network", [pl.MLP((5, 4), "gelu"), pl.PolyNet(2), pl.Neuron("sinusoid:2")], ids=str)
def test_trained_params_follow_the_oracle(network):
    result = pl.measure(pl.Parity(n=7, k=2), pl.Learner(network, loss="square", optimiser=pl.SGD(0.03), batch=6),
                        pl.Protocol(max_steps=40, eval_every=40, eval_size=16), runs=3, seed=5)
    start = jax.tree.map(lambda leaf: leaf[2], result.networks(at="start").tree)
    expected = oracle.train(result.setup, 5, 2, start, 40)
    for step in (1, 13, 40):
        got = oracle.leaves(result.network(2, at=step).tree)
        for g, w in zip(got, oracle.leaves(expected[step - 1]), strict=True):
            np.testing.assert_allclose(g.reshape(w.shape), w, rtol=0, atol=1e-4)


@pytest.mark.long
def test_on_jax_they_are_exact_up_to_the_end_of_the_record():
    result = pl.measure(pl.Parity(n=6, k=2), pl.Learner(pl.MLP(4, "tanh"), batch=8), QUICK, runs=5)
    assert result.engine == engines.label("jax")
    curve = pl.curves(result.setup, [11], runs=range(5), weights=True)
    networks = result.networks(at=11)
    assert networks.exact
    for name, leaf in arrays.named(curve.weights).items():
        np.testing.assert_allclose(networks.params[name], leaf[:, 0], rtol=1e-5)
    assert result.network(0).exact
    assert not result.network(0, at="after").exact


def test_outputs_are_those_of_the_network(result):
    x = np.where(np.random.default_rng(0).random((30, 9)) < 0.5, 1, -1)
    networks = result.networks(range(5))
    each = [oracle.forward(result.setup.learner.network, jax.tree.map(lambda leaf, i=i: leaf[i].astype(float),
                                                                      networks.tree), x) for i in range(5)]
    np.testing.assert_allclose(networks.apply(x), each, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(networks[3].apply(x.reshape(5, 6, 9)).ravel(), each[3], rtol=1e-5, atol=1e-5)
    assert networks[3].apply(x[0]).shape == ()
    with pytest.raises(pl.InvalidInput, match="rows of 9 numbers"):
        networks.apply(x[:, :8])


def test_many_networks_are_computed_in_parts(result, monkeypatch):
    x = np.ones((3, 9))
    whole = result.networks().apply(x)
    monkeypatch.setattr(arrays, "MOST_NUMBERS", 200)
    np.testing.assert_allclose(result.networks().apply(x), whole, rtol=1e-6)


def test_networks_are_indexed_like_a_list(result):
    networks = result.networks()
    assert [network.run for network in networks] == list(range(24))
    assert networks[-1].run == 23
    assert networks[[4, 2]].runs.tolist() == networks[4:1:-2].runs.tolist() == [4, 2]
    assert len(networks[[]]) == 0
    assert networks[networks.steps > 1e9].apply(np.ones((2, 9))).shape == (0, 2)
    assert "24 TrainedNetworks" in repr(networks)
    assert "run 3" in repr(networks[3])


def test_a_support_of_each_run_is_its_own():
    result = pl.measure(pl.Parity(n=7, k=2, support="random"), pl.Learner(batch=8), QUICK, runs=6)
    curve = pl.curves(result.setup, [20], runs=[4], weights=True)
    assert np.array_equal(result.network(4, at=20).params["0.w"], curve.weights[0]["w"][0, 0])


@pytest.mark.long
def test_users_networks_have_names_too():
    def make(key, n):
        return {"layers": (jax.random.normal(key, (n, 3)), jnp.ones(3)), "scale": jnp.ones(())}

    def forward(params, x):
        w, u = params["layers"]
        return params["scale"] * jnp.tanh(x @ w) @ u

    result = pl.measure(pl.Parity(n=4, k=1), pl.Learner(pl.Network(make, forward), batch=4), QUICK, runs=2)
    network = result.network(1, at=5)
    assert {name: leaf.shape for name, leaf in network.params.items()} == {
        "layers.0": (4, 3), "layers.1": (3,), "scale": ()}
    np.testing.assert_allclose(network.apply(np.ones((2, 4))), forward(network.tree, np.ones((2, 4))), rtol=1e-6)


# --- what is refused --------------------------------------------------------------------------------------------------


def unsolved() -> pl.Result:
    return pl.measure(pl.Parity(n=9, k=2), pl.Learner(pl.MLP(6), batch=8), replace(QUICK, max_steps=70), runs=24)


def test_an_unsolved_run_has_no_solved_network_unless_it_is_left_out():
    result = unsolved()
    solved = np.flatnonzero(result.records.t_c > 0)
    assert 0 < len(solved) < 24
    for at in ("before", "solved", "after"):
        with pytest.raises(pl.InvalidInput, match=r"was censored at step 70.*omit_missing leaves"):
            result.networks(at=at)
        assert result.networks(at=at, omit_missing=True).runs.tolist() == solved.tolist()
    assert len(result.networks(at="end")) == 24
    assert len(result.networks(at=100)) == 24


def test_a_diverged_run_has_no_network_afterwards():
    result = pl.measure(pl.Parity(n=5, k=2), pl.Learner(pl.PolyNet(3), loss="square", optimiser=pl.SGD(50.0)),
                        pl.Protocol(max_steps=100, eval_size=64), runs=4)
    assert np.all(result.records.status == DIVERGED)
    for at in ("end", 100, 9):  # nothing was checked at step 9
        with pytest.raises(pl.InvalidInput, match="diverged"):
            result.networks(at=at)
        assert len(result.networks(at=at, omit_missing=True)) == 0
    assert len(result.networks(at="start")) == 4


@pytest.mark.parametrize(("arguments", "words"), [
    ({"runs": [3, 99]}, "no record of run 99: runs 0 to 23"),
    ({"runs": 5}, r"a range or a list.*network\(5\)"),
    ({"runs": [1, 1]}, "different"),
    ({"runs": ["x"]}, "a run must be"),
    ({"at": "finish"}, "unknown moment 'finish'.*allowed: start, before, solved, after, end, a step"),
    ({"at": -1}, "must be in 0"),
    ({"at": 2.5}, "whole number"),
])
def test_what_cannot_be_had_is_refused_in_a_line(result, arguments, words):
    with pytest.raises(pl.InvalidInput, match=words):
        result.networks(**arguments)


def test_runs_that_do_not_end_as_their_record_says_are_refused(result):
    records = result.records
    wrong = replace(records, t_c=records.t_c + 7 * (records.run == 5), steps=records.steps + 7 * (records.run == 5))
    with pytest.raises(pl.InvalidInput, match=r"run 5 was solved at step \d+ when measured and is solved at step"):
        replace(result, records=wrong).networks(at="before")
    assert len(replace(result, records=wrong).networks(range(5))) == 5
    rounded = replace(records, loss=np.nextafter(records.loss, np.float32(1)))
    assert not replace(result, records=rounded).networks().exact


def test_records_of_an_engine_that_is_not_here_are_refused(result):
    with pytest.raises(pl.InvalidInput, match="measured by 'warps_Other', which is not on this machine"):
        replace(result, engine="warps_Other").networks()


# --- any Setup --------------------------------------------------------------------------------------------------------

numbers = st.integers(1, 6)
setups = st.builds(
    lambda n, k, sample, network, loss, optimiser, batch, protocol: pl.Setup(
        pl.Parity(n, min(k, n), sample=sample), pl.Learner(network, "torch", loss, optimiser, batch), protocol),
    numbers, st.integers(0, 2), st.none() | numbers,
    st.one_of(numbers.map(pl.MLP), st.tuples(numbers, numbers).map(pl.MLP), numbers.map(pl.PolyNet)),
    st.sampled_from(["hinge", "square", "logistic"]),
    st.sampled_from([pl.SGD(0.1), pl.Adam(0.01), pl.SGD(0.1, momentum=0.9, schedule="cosine:30"),
                     pl.SGD(0.1, noise=0.1)]),
    numbers,
    st.builds(pl.Protocol, max_steps=st.integers(1, 40), eval_every=numbers, eval_size=st.integers(1, 40),
              consecutive=st.integers(1, 3), fresh=st.booleans()),
)


@pytest.mark.long
@built
@settings(max_examples=25, deadline=None, derandomize=True, database=None,
          suppress_health_check=[HealthCheck.too_slow])
@given(setups, st.integers(0, 2**32 - 1), st.integers(0, 90))
def test_networks_are_those_of_the_curves_in_any_setup(setup, seed, step):
    result = pl.sweep([setup], 5, seed=seed, engine="lanes", threads=1)[0]
    curve = pl.curves(setup, [step], runs=range(5), seed=seed, weights=True, engine="lanes", threads=1)
    networks = result.networks(at=step, threads=1, omit_missing=True)
    for name, leaf in arrays.named(curve.weights).items():
        assert np.array_equal(networks.params[name], leaf[networks.runs, 0])


# --- kept -------------------------------------------------------------------------------------------------------------

SMALL = (pl.Parity(n=9, k=2), pl.Learner(pl.MLP(6), batch=8), QUICK)


@pytest.fixture
def untrained(monkeypatch):
    """After a call, whatever would train again fails."""

    def refuse(*_, **__):
        raise AssertionError("trained again")

    return lambda: monkeypatch.setattr(regenerating, "_trained", refuse)


@pytest.mark.parametrize("stored", [False, True])
def test_kept_networks_are_those_that_were_trained(result, tmp_path, stored, untrained):
    store = pl.Store(tmp_path / "store") if stored else None
    kept = pl.measure(*SMALL, runs=24, keep="weights", store=store)
    want = result.networks([5, 3, 20])
    untrained()
    if stored:  # whoever asks the store for the records finds the networks
        kept = pl.measure(*SMALL, runs=24, store=pl.Store(tmp_path / "store"))
    assert len(kept.networks(at="end")) == 24
    found = kept.networks([5, 3, 20])
    assert found.runs.tolist() == [5, 3, 20]
    assert found.exact
    assert np.array_equal(found.steps, want.steps)
    for name, leaf in want.params.items():
        assert np.array_equal(found.params[name], leaf)
    with pytest.raises(AssertionError, match="trained again"):
        kept.networks(at="before")


def test_what_is_not_kept_yet_is_trained_again(tmp_path, untrained):
    store = pl.Store(tmp_path / "store")
    pl.measure(*SMALL, runs=10, store=store)  # records alone
    pl.measure(*SMALL, runs=range(5, 24), store=store, keep="weights")
    pl.measure(*SMALL, runs=24, store=store, keep="weights")
    files = sorted(store.root.glob("networks/*/*.safetensors"))
    assert len(files) == 3  # 10 to 23 as they were trained, 5 to 9 and 0 to 4 again
    assert [len(pl.TrainedNetworks.load(path)) for path in files] == [5, 14, 5]
    untrained()
    again = pl.measure(*SMALL, runs=24, store=store, keep="weights")
    assert len(again.networks()) == 24
    assert sorted(store.root.glob("networks/*/*.safetensors")) == files
    files[0].write_bytes(files[0].read_bytes()[:-1])
    with pytest.warns(KeptWarning, match="damaged"), pytest.raises(AssertionError, match="trained again"):
        pl.measure(*SMALL, runs=24, store=store).networks()


def test_an_interrupted_sweep_leaves_what_it_had_kept(tmp_path, monkeypatch, untrained):
    store = pl.Store(tmp_path / "store")
    ended = 0

    def some(*arguments, **options):
        nonlocal ended
        for part in training(*arguments, **options):
            ended += sum(len(records) for _, records in part)
            yield part
            if ended >= 8:
                raise KeyboardInterrupt

    training = engines.train
    monkeypatch.setattr(engines, "train", some)
    hard = pl.Parity(n=24, k=3), pl.Learner(pl.MLP(6), batch=8), replace(QUICK, max_steps=30_000, threshold=0.9)
    with pytest.raises(KeyboardInterrupt):
        pl.measure(*hard, runs=64, store=store, keep="weights", threads=1)
    monkeypatch.setattr(engines, "train", training)
    (series,) = store.root.glob("networks/*")
    before = sum(len(pl.TrainedNetworks.load(path)) for path in series.iterdir())
    assert 8 <= before <= 64
    assert before == len(store.runs(*series.name.split("-")[:2], 0))


def test_diverged_runs_have_no_network_to_keep():
    result = pl.measure(pl.Parity(n=5, k=2), pl.Learner(pl.PolyNet(3), loss="square", optimiser=pl.SGD(50.0)),
                        pl.Protocol(max_steps=100, eval_size=64), runs=4, keep="weights")
    assert len(result.networks(at="end", omit_missing=True)) == 0


def test_networks_of_other_machines_are_merged(tmp_path, untrained):
    for name, runs in (("here", range(10)), ("there", range(10, 24))):
        pl.measure(*SMALL, runs=runs, store=pl.Store(tmp_path / name / "store"), keep="weights")
    done = merge(tmp_path / "here", [tmp_path / "there"])
    assert (done.added, done.networks) == (14, 1)
    assert merge(tmp_path / "here", [tmp_path / "there"]).networks == 0
    untrained()
    assert len(pl.measure(*SMALL, runs=24, store=pl.Store(tmp_path / "here" / "store")).networks()) == 24


def test_nothing_else_is_kept():
    with pytest.raises(pl.InvalidInput, match="keep must be 'weights' or None, not 'records'"):
        pl.measure(*SMALL, runs=1, keep="records")
