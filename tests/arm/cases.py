"""What must come out alike on every instruction set: cases of every layout, network, activation, loss and option."""

# ruff: noqa: C408 - options are keyword arguments, as in native_pools.py

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
from kernel_reference import Factors
from native_pools import ACTIVATIONS, DEFAULTS, INF, LOSSES, _lanes, make_run

import paritylab as pl
from paritylab.engines import Job
from paritylab.engines.configuration import Configuration
from paritylab.engines.starts import initial_params
from paritylab.engines.work import Queue

Config = dict[str, Any]
Case = tuple[Config, list[dict[str, Any]], np.ndarray]

FAMILIES = ("mlp", "neuron", "polynet")  # these five in the order of native/paritylab.h
KINDS = ("clip", "power", "zigzag", "triangle", "polynomial", "sinusoid", "gelu")
LOSS_KINDS = ("hinge", "square", "logistic", "correlation", "l1", "clipped-logistic")
RULES = ("sgd", "momentum", "adam", "rmsprop", "sign")
LAYOUTS = ("lanes", "within", "deep", "tables", "samples", "auto")
SHALLOW = LAYOUTS[:4]
"""Of a network with one hidden layer of ReLU."""
COUNTED = LAYOUTS[:5]
"""Of one whose loss has slopes of one size."""
COUNTED_LOSSES = [("hinge", [0.8]), ("correlation", []), ("l1", [])]
WILD = ("power", "polynomial")  # their runs diverge unless they start small and move slowly
COMMON = DEFAULTS | dict(n=12, eval_size=48, eval_every=5, allowed_errors=2)


def cases() -> dict[str, list[Case]]:
    """Cases by the line of the table that they belong to."""
    return {
        "W1 to the end": [_w1(256)],
        "activations and losses": _activations_and_losses(),
        "shapes": _shapes(),
        "deep": _deep(),
        "options": _options(),
        "optimisers": _optimisers(),
        "divergence": _divergence(),
        "samples": _samples(),
        "problems": _problems(),
    }


def _case(runs: int, steps: int, lr: float = 0.05, tau: float = 0.0, flip: int = 0, scale: float = 1.0,
          **options: Any) -> Case:
    """Runs of unequal lengths, so that slots are refilled on the way."""
    cfg = COMMON | options
    made = [make_run(cfg, seed, lr * (1 + seed % 3), tau * (seed % 2), flip, scale) for seed in range(runs)]
    return cfg, made, steps - np.arange(runs) % 7


def factors(steps: int) -> Factors:
    """A schedule over so many steps."""
    return Factors(np.linspace(1, 0.1, steps), _lanes.SCHEDULE_BLOCK)


def _w1(count: int) -> Case:
    """The work of docs/explanation/performance.md, with its own start weights, as the engine hands it to the kernel."""
    setup = pl.Setup(pl.Parity(30, 3), pl.Learner(optimiser=pl.SGD(1.0)), pl.Protocol(2000, eval_size=128))
    rows = Queue([Job(setup, 0, np.arange(count))]).take(count)
    hidden, output = initial_params(setup.program, rows.key)
    arrays = {"W": hidden["w"], "b": hidden["b"], "u": output["w"][:, :, 0], "c": output["b"][:, 0]}
    runs = [dict(start={name: array[i] for name, array in arrays.items()}, key=rows.key[i], lr=rows.lr[i],
                 tau=rows.noise[i], flip=int(rows.flip[i]), mask=rows.mask[i]) for i in range(count)]
    return COMMON | Configuration.of(setup.program).to_dict(), runs, rows.max_steps


def _activations_and_losses() -> list[Case]:
    found = []
    for (activation, params), (loss, loss_params) in itertools.product(ACTIVATIONS, LOSSES):
        named = dict(activation=activation, activation_params=params, loss=loss, loss_params=loss_params)
        start = dict(lr=0.01, scale=0.5) if activation in WILD else {}
        layouts = SHALLOW if params == [INF] else SHALLOW[:-1]
        if params == [INF] and (loss, loss_params) in COUNTED_LOSSES:
            layouts = COUNTED
        found += [_case(9, 20, **start, **named, width=7, layout=layout) for layout in layouts]
        found += [_case(9, 20, **start, **named, width=1, family="neuron")]
    for loss, loss_params in LOSSES:
        found += [_case(9, 20, lr=0.02, scale=0.8, loss=loss, loss_params=loss_params, family="polynet", width=width)
                  for width in (1, 3, 13)]
    return found


def _shapes() -> list[Case]:
    shapes = ((5, 1), (31, 2), (32, 11), (33, 3), (40, 64), (70, 17), (1024, 2))
    found = [_case(5, 8, n=n, width=width, batch=batch, layout=layout)
             for (n, width), batch, layout in itertools.product(shapes, (1, 7, 33, 70), COUNTED)]
    found += [_case(3, 8, n=40, width=37, batch=batch, bits=True, layout=layout)
              for batch, layout in itertools.product((1, 70, 300), SHALLOW)]
    found += [_case(2, 6, n=n, width=width, batch=batch, eval_size=500)
              for n, width, batch in ((30, 33, 700), (37, 500, 300), (100, 16, 5000))]
    return [*found, _case(2, 6, n=30, width=1000, batch=32), _case(2, 6, n=30, width=1000, batch=1)]


def _deep() -> list[Case]:
    found = []
    for below, width in (([7], 5), ([35, 113], 100), ([16, 16, 16], 16), ([209], 33)):
        rates = [1.0] * (len(below) + 2)
        found += [_case(3, 12, below=below, width=width, rates=rates, batch=batch) for batch in (1, 13, 64, 70)]
    for activation, params in ACTIVATIONS:
        lr = 1e-3 if activation in WILD else 0.02
        named = dict(activation=activation, activation_params=params)
        found += [_case(3, 12, lr=lr, scale=0.5, below=[9, 19], width=5, rates=[1.0] * 4, **named)]
    for tau, bias, decay in ((0.1, True, 0.0), (0.1, False, 0.0), (0.0, True, 0.1)):
        options = dict(tau=tau, bias=bias, decay_coupled=decay, decay_plain=decay / 10)
        found += [_case(3, 12, below=[20], width=6, rates=[1.0, 0.5, 2.0], **options)]
    return found


def _options() -> list[Case]:
    found = []
    for batch, layout in itertools.product((1, 8, 40), COUNTED):
        shape = dict(n=33, width=9, batch=batch, layout=layout)
        found += [
            _case(9, 20, **shape, tau=0.3),
            _case(9, 20, **shape, flip=2**30),
            _case(9, 20, **shape, bias=False),
            _case(9, 20, **shape, loss_params=[0.05], skips_satisfied=True, decay_plain=0.01),
            _case(9, 20, **shape, decay_coupled=0.3, decay_plain=0.01, rates=(0.5, 2.0)),
            _case(9, 20, **shape, decay_plain=0.01, rates=(1.0, 0.0)),
            _case(9, 20, **shape, schedule=factors(20)),
            _case(9, 20, **shape, eval_fresh=True, consecutive=2, allowed_errors=20),
            _case(9, 20, **shape, sample=30, replacement=True, flip=2**29),
            _case(9, 20, **shape, sample=30, replacement=False, flip=2**29),
            _case(9, 20, **shape, sample=batch, replacement=False),
        ]
    found += [_case(9, 20, tau=0.1, family="polynet", n=33, width=3), _case(9, 20, tau=0.1, family="neuron", width=1)]
    return found


def _optimisers() -> list[Case]:
    rules = (("sgd", []), ("momentum", [0.9, 0.0]), ("momentum", [0.9, 1.0]), ("adam", [0.9, 0.999, 1e-8]),
             ("rmsprop", [0.99, 1e-8, 0.0]), ("rmsprop", [0.9, 1e-8, 0.5]), ("sign", [0.0, 0.0]), ("sign", [0.9, 0.99]))
    found = []
    for (rule, params), layout in itertools.product(rules, COUNTED):
        shape = dict(n=33, width=9, batch=8, layout=layout, rule=rule, rule_params=params)
        found += [_case(9, 20, lr=0.01, **shape, tau=0.1), _case(9, 20, lr=0.01, **shape, clip=0.3, decay_gradient=0.1)]
        found += [_case(9, 20, lr=0.01, below=[20], rates=[1.0, 0.0, 2.0], clip=0.3,
                        **shape | dict(layout="deep"))] * (layout == "deep")
    return found


def _divergence() -> list[Case]:
    """Overflow, infinities and NaN on the way, and numbers below the smallest normal one."""
    wild = dict(activation="power", activation_params=[3], loss="square", loss_params=[])
    found = [_case(9, 40, lr=1e3, width=7, layout=layout, **wild) for layout in ("lanes", "within", "deep")]
    tiny = dict(lr=1e-38, scale=1e-38, width=7, activation="clip", activation_params=[INF])
    large = [_case(9, 40, lr=lr, width=7, batch=40, layout="samples", loss=loss, loss_params=[1.0][:loss == "hinge"])
             for lr in (1e10, 1e30) for loss in ("hinge", "correlation", "l1")]
    return [*found, *large, *(_case(9, 20, layout=layout, **tiny) for layout in COUNTED),
            _case(9, 40, lr=1e3, width=7, layout="tables", loss="square", loss_params=[])]


def _samples() -> list[Case]:
    """One run at a time: words and fives of inputs that are full or not, pairs of units, and words of samples."""
    inputs, widths = (7, 29, 30, 31, 32, 33, 45, 60, 64, 100), (1, 2, 7, 10, 16, 33)
    found = []
    for i, (n, batch) in enumerate(itertools.product(inputs, (20, 31, 32, 33, 64, 100, 300))):
        loss, loss_params = COUNTED_LOSSES[i % 3]
        named = dict(loss=loss, loss_params=loss_params, layout="samples")
        found += [_case(2, 12, n=n, width=widths[(i + i // 7) % 6], batch=batch, **named)]
    for i, n in enumerate(inputs):
        found += [_case(1, 5, n=n, width=widths[i % 6], batch=1500, layout="samples")]
    options = (
        dict(tau=0.3), dict(flip=2**30), dict(bias=False), dict(rates=(0.5, 2.0), decay_coupled=0.3, decay_plain=0.01),
        dict(schedule=factors(20)), dict(sample=300, replacement=True, flip=2**29), dict(sample=300, replacement=False),
        dict(loss="l1", loss_params=[]), dict(rule="momentum", rule_params=[0.9, 1.0], decay_gradient=0.1),
        dict(rule="adam", rule_params=[0.9, 0.999, 1e-8], clip=0.3, tau=0.1, lr=0.01),
        dict(loss_params=[0.05], skips_satisfied=True, decay_plain=0.01), dict(eval_size=2100, eval_fresh=True),
    )
    for i, (option, batch) in enumerate(itertools.product(options, (20, 64, 1500))):
        shape = dict(n=inputs[i % 10], width=widths[i % 6], batch=batch, layout="samples")
        found += [_case(2, 5 if batch > 64 else 12, **shape | option)]
    return found


def _problems() -> list[Case]:
    """Targets, laws and stages of every kind, as the engine hands them to the kernel."""
    from paritylab.engines import sources

    laws = pl.laws
    posed = [
        pl.LeakyParity(33, 3, leak=0.3), pl.Polynomial(12, terms=[(0.5, (0, 1)), (-1.5, (2, 3, 4))]),
        pl.Problem(12, "majority:5"), pl.Problem(12, "staircase:4", scale=0.5),
        pl.Problem(33, pl.Table((3, 4, 5, 32), "9a6f")), pl.Parity(12, 3, sample=30, short_last=True),
        pl.Problem(12, pl.Sum([(1.0, (0,)), (-0.7, (1, 2))], sign=True), "biased:0.3"),
        pl.Problem(33, [0, 1, 32], laws.Mixture(0.2, laws.Biased(0.9), laws.Active(20))),
        pl.Problem(33, [0, 1], laws.Pairs([(3, 4), (5, 32)], -0.5)), pl.Problem(12, [0, 1, 2], "biased:0.3", sample=40),
        pl.Problem(12, pl.Tasks([(2, 3), (3, 4, 5)], weights=(1, 3), solved=(1,))),
        pl.Problem(12, pl.Tasks([(2, 3), (4,), (2, 3, 4)], controls=[(0,), (1,), (0, 1)], in_turn=True)),
        pl.Problem(33, [0, 1, 2], evaluation="biased:0.8",
                   stages=[pl.Stage(6, "biased:0.9", slide=True), pl.Stage(13, batch=3, noise=0.2)]),
    ]
    found = []
    for problem, layout in itertools.product(posed, COUNTED):
        told = sources.told(problem, pl.Protocol(eval_size=48, threshold=0.9), 8)
        shape = dict(n=problem.n, width=9, batch=8, layout=layout, sample=problem.sample or 0, replacement=False,
                     short_last=problem.short_last)
        if layout == "samples" and told and (told["scale"] != 1 or (told["target"] == "sum" and not told["sign"])):
            shape |= dict(loss="l1", loss_params=[])  # labels of any size
        found += [_case(9, 20, flip=2**28, **shape, problem=told, within=within) for within in (-1.0, 0.5)]
    for batch in (40, 1500):  # of which stages have a part
        told = sources.told(posed[-1], pl.Protocol(eval_size=48, threshold=0.9), batch)
        found += [_case(2, 20, n=33, width=9, batch=batch, layout="samples", problem=told)]
    return found


# --- to the driver and back -------------------------------------------------------------------------------------------


def to_bytes(made: list[Case]) -> bytes:
    """What driver.cpp reads, in the form of native/message.h."""
    return b"".join([_whole(len(made)), *itertools.chain.from_iterable(map(_parts, made))])


def _whole(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *map(int, numbers))


def _real(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *np.float32(numbers))


def _raw(numbers: Any, kind: str) -> bytes:
    data = np.asarray(numbers, kind).tobytes()
    return data + bytes(-len(data) % 8)


def _many(numbers: Any, kind: str) -> bytes:
    data = np.asarray([] if numbers is None else numbers, kind).reshape(-1)
    return _whole(data.size) + _raw(data, kind)


def _problem(p: dict[str, Any]) -> list[bytes]:
    laws = p["laws"]  # (cumulative, planes, always, copies, plain) of each
    copies = [pairs for law in laws for pairs in law[3]]
    return [
        _whole(p["stride"], -1 if p["leak"] is None else p["leak"]), _many([len(law[3]) for law in laws], "<i8"),
        _many([law[4] for law in laws], "<i8"),
        *(_many(np.concatenate([np.ravel(law[i]) for law in laws]), "<u4") for i in range(3)),
        _many([len(pairs) for pairs in copies], "<i8"),
        _many([j for pairs in copies for pair in pairs for j in pair], "<u4"),
        _whole(p["law"], p["evaluation_law"]), _many(p["stages"], "<i8"),
        _whole(("product", "sum", "table", "tasks").index(p["target"])), _real(p["scale"]),
        _many([c for c, _ in p["terms"]], "<f4"), _many([mask for _, mask in p["terms"]], "<u4"), _whole(p["sign"]),
        _many(p["places"], "<i8"), _many(p["table"], "<u4"), _many(p["task_cumulative"], "<u4"),
        _many(p["task_masks"], "<u4"), _many(p["task_allowed"], "<i8"), _many(p["task_controls"], "<u4"),
        _whole(p["in_turn"]),
    ]


def _parts(case: Case) -> list[bytes]:
    cfg, runs, max_steps = case
    bias = (1 if cfg.get("head_bias", True) else 2) if cfg.get("bias", True) else 0
    problem = cfg.get("problem")
    parts = [
        _whole(FAMILIES.index(cfg["family"]), cfg["n"]), _many([*cfg.get("below", []), cfg["width"]], "<i8"),
        _whole(bias, KINDS.index(cfg["activation"])), _many(cfg["activation_params"], "<f4"),
        _whole(LOSS_KINDS.index(cfg["loss"])), _many(cfg["loss_params"], "<f4"), _whole(cfg["batch"]),
        _many(cfg["schedule"] and cfg["schedule"].factors, "<f4"), _many(cfg["rates"], "<f4"),
        _real(cfg["decay_coupled"], cfg["decay_plain"]),
        _whole(cfg["sample"], cfg["replacement"], cfg.get("short_last", False), cfg["eval_every"], cfg["eval_size"],
               cfg["eval_fresh"], cfg["allowed_errors"]),
        _real(cfg.get("within", -1.0)),
        _whole(cfg["consecutive"], LAYOUTS.index(cfg["layout"]), RULES.index(cfg.get("rule", "sgd"))),
        _many(cfg.get("rule_params", []), "<f4"), _real(cfg.get("clip", 0), cfg.get("decay_gradient", 0)),
        _whole(cfg.get("bits", False), cfg.get("skips_satisfied", False)),
        _whole(problem is not None), *(_problem(problem) if problem else []), _whole(len(runs)),
    ]
    for run, steps in zip(runs, max_steps, strict=True):
        parts.append(_whole(*run["key"], run["flip"], steps) + _real(run["lr"], run["tau"]) + _raw(run["mask"], "<u4"))
        parts += [_raw(run["start"][name], "<f4") for name in "Wbuc"]
    return parts


def from_bytes(made: list[Case], data: bytes) -> list[dict[str, np.ndarray]]:
    """What driver.cpp wrote: the columns of each case's records, by tag."""
    found, at = [], 0
    for _, runs, _ in made:
        sizes = [(name, "<f4", runs[0]["start"][name].size) for name in "Wbuc"]
        heads = [*((name, "<i8", 1) for name in ("tag", "status", "t_c", "steps")),
                 *((name, "<f8", 1) for name in ("accuracy", "loss"))]
        record = np.dtype([(name, kind, (size,)) for name, kind, size in heads + sizes])
        rows = np.frombuffer(data, record, len(runs), at)
        at += record.itemsize * len(runs)
        rows = rows[np.argsort(rows["tag"][:, 0], kind="stable")]
        found.append({name: rows[name] for name in record.names or ()})
    assert at == len(data), "the driver wrote more than it was asked for"
    return found
