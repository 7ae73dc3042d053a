"""Several outputs on the native engine: curves and records beside those of JAX, instruction sets, refusals."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from lengths import long_but
from same_curves import assert_same

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, lanes
from paritylab.engines.curves import curves
from paritylab.errors import InvalidInput

pytestmark = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
SEED = 4
THREE = pl.Outputs([(0, 1), (2, 3), (0, 5, 6)], counted=(1, 0.3, 0.7))
TWO = pl.Outputs([(0, 1), (2,)])
CASES = {
    "sample, some counted": pl.Setup(
        pl.Problem(12, THREE, sample=300, scale=0.5),
        pl.Learner(pl.MLP(20, inputs="bits", outputs=3), "raised:0.5 torch", "square", pl.Adam(0.01), batch=300)),
    "fresh, noisy": pl.Setup(
        pl.Problem(12, TWO, noise=0.1), pl.Learner(pl.MLP(40, outputs=2), loss="logistic", optimiser=pl.SGD(0.1))),
    "sample with noise": pl.Setup(
        pl.Problem(40, TWO, sample=50, noise=0.2), pl.Learner(pl.MLP(7, outputs=2, bias=False), batch=20)),
    "blocks, within a tolerance": pl.Setup(
        pl.Problem(12, THREE, sample=9000),
        pl.Learner(pl.MLP(16, outputs=3), loss="square", optimiser=pl.SGD(0.05, momentum=0.5), batch=9000),
        pl.Protocol(within=0.6)),
}


@pytest.mark.parametrize("name", long_but(CASES, "sample, some counted"))
def test_curves_are_those_of_jax_output_by_output(name):
    setup = replace(CASES[name], protocol=replace(CASES[name].protocol, eval_size=130))
    train = setup.problem.sample is not None
    got, want = (curves(setup, [0, 1, 2, 20], runs=range(3), seed=SEED, engine=engine, weights=True, train=train)
                 for engine in ("lanes", "jax"))
    assert_same(got, want)


SOLVED = pl.Setup(pl.Problem(8, TWO), pl.Learner(pl.MLP(32, outputs=2), optimiser=pl.SGD(0.3), batch=64),
                  pl.Protocol(max_steps=400, eval_size=256))


@pytest.mark.long
def test_a_run_is_solved_when_all_outputs_are_right():
    jobs = [Job(SOLVED, SEED, np.arange(20))]
    (got, params), (want, other) = (engines.final_params(jobs, engine) for engine in ("lanes", "jax"))
    assert (want.status == 0).sum() > 10
    np.testing.assert_array_equal(got.status, want.status)
    assert np.mean(got.t_c == want.t_c) >= 0.9  # rounding may move a run by a check
    for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(other), strict=True):
        assert a.shape == b.shape


def test_records_depend_neither_on_company_nor_on_the_instruction_set():
    def found(runs, isa, threads):
        records, params = engines.final_params([Job(SOLVED, SEED, np.array(runs))], "lanes", isa=isa, threads=threads)
        return {int(run): (records.t_c[i], records.loss[i], [leaf[i].tobytes() for leaf in jax.tree.leaves(params)])
                for i, run in enumerate(records.run)}

    together = found(range(6), "auto", 2)
    for isa in lanes.kernel().supported_isas():
        if isa == "baseline":
            continue  # it has no fused multiply-add
        assert found([4, 1], isa, 1) == {run: together[run] for run in (1, 4)}


@pytest.mark.parametrize(
    ("network", "problem", "why"),
    [(pl.MLP((5, 4), outputs=2), pl.Problem(9, TWO), "one hidden layer of ReLU"),
     (pl.MLP(5, "gelu", outputs=2), pl.Problem(9, TWO), "one hidden layer of ReLU"),
     (pl.MLP(5, outputs=17), pl.Problem(20, pl.Outputs([(j,) for j in range(17)])), "at most 16 outputs"),
     (pl.MLP(5, outputs=2), pl.Problem(1025, TWO), "at most 1024 inputs")],
)
def test_what_it_cannot_train_is_refused(network, problem, why):
    with pytest.raises(InvalidInput, match=why):
        engines.choose(pl.Setup(problem, pl.Learner(network)), "lanes")


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"outputs": 3}, "a mask of each"), ({"outputs": 17}, "expected 1 to 16"), ({"outputs": 0}, "expected 1 to 16"),
     ({"problem": None}, "a problem that says of what"), ({"layout": "lanes"}, "'tables' only"),
     ({"activation": "power", "activation_params": [2.0]}, "one hidden layer of relu"),
     ({"counted": [1]}, "in how many examples"), ({"counted": [1, 65]}, "0 to batch"),
     ({"target": "product"}, "a parity for each")],
)
def test_a_configuration_that_does_not_hang_together_is_refused(changed, why):
    told = engines.configuration.Configuration.of(SOLVED.program).to_dict()
    problem = told["problem"] | {name: changed.pop(name) for name in ("counted", "target") if name in changed}
    told |= {"problem": lanes.kernel().Problem(**problem)} | changed
    with pytest.raises(ValueError, match=why):
        lanes.kernel().Pool(**told, keep_params=False, threads=1)
