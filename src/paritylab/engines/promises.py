"""Which engine made some records, and whether it promises the same ones here (docs/explanation/engines.md)."""

from __future__ import annotations

from collections.abc import Mapping

from paritylab import provenance
from paritylab.engines import registry, starts
from paritylab.engines.arithmetic import parsed
from paritylab.engines.registry import engines
from paritylab.setups.setup import Setup


def labelled(label: str, setup: Setup) -> str | None:
    """The engine of this machine whose records have this label, if it can train the Setup."""
    for name, each in engines().items():
        if registry.label(each) == label and each.absence() is None and each.refusal(setup) is None:
            return name
    return None


def current(label: str) -> str:
    """The label of the same engine with the arithmetic that it has here.

    >>> current("jax"), current("unheard_of")
    ('jax_2', 'unheard_of')
    """
    here = {parsed(registry.label(each))._replace(version=1): each for each in engines().values()}
    same = here.get(parsed(label)._replace(version=1))
    return label if same is None else registry.label(same)


def exact(engine: str | None, label: str, setup: Setup, origin: Mapping[str, str]) -> bool:
    """Whether an engine of this machine makes, to the last bit, the records of this label that come from there."""
    if label != current(label):
        return False
    here = provenance.origin()
    alike = all(origin.get(name) == here[name] for name in ("hardware", "processor", "libraries"))
    if engine == "lanes":
        vectors = _vectors() and "baseline" not in origin.get("build", "")
        return alike or (vectors and _kernel_alone(setup))
    if engine == "jax":
        return not parsed(label).device and alike
    return engine == "warps" and bool(origin) and origin.get("build") == provenance.build(label)


def _vectors() -> bool:
    """Whether the kernel has one of the instruction sets that agree."""
    kernel = provenance.kernel()
    return kernel is not None and kernel.supported_isas()[0] != "baseline"


def _kernel_alone(setup: Setup) -> bool:
    """Whether nothing that JAX computes is a part of training."""
    learner, problem = setup.learner, setup.problem
    return starts.can_draw(learner.network, learner.init, problem.n) and learner.optimiser.schedule.constant
