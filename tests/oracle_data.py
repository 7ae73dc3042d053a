"""What the oracle draws: random numbers, inputs, labels. Written from the definitions; no code of engines is shared."""

from __future__ import annotations

import math

import numpy as np

INIT, DATA, LABELS, EVALUATION, SAMPLE, ORDER, NOISE = range(7)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


# Random numbers -------------------------------------------------------------------------------------------------


def threefry(key, x0, x1):
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011)."""
    k = [np.uint32(key[0]), np.uint32(key[1]), np.uint32(key[0]) ^ np.uint32(key[1]) ^ np.uint32(0x1BD11BDA)]
    with np.errstate(over="ignore"):
        x0, x1 = np.asarray(x0, np.uint32) + k[0], np.asarray(x1, np.uint32) + k[1]
        for group in range(5):
            for r in ROTATIONS[group % 2]:
                x0 = x0 + x1
                x1 = (x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))
                x1 = x1 ^ x0
            x0 = x0 + k[(group + 1) % 3]
            x1 = x1 + k[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def fold_in(key, data):
    x0, x1 = threefry(key, 0, data)
    return (int(x0), int(x1))


def bits(key, shape):
    x0, x1 = threefry(key, np.zeros(math.prod(shape), np.uint32), np.arange(math.prod(shape), dtype=np.uint32))
    return (x0 ^ x1).reshape(shape)


def run_key(seed, run):
    return fold_in((0, seed), run)


def normal(key, shape):
    from scipy.special import erfinv

    u = ((bits(key, shape) >> np.uint32(9)) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)
    low = np.nextafter(np.float32(-1), np.float32(0))
    u = np.maximum(low, u * (np.float32(1) - low) + low)
    return math.sqrt(2) * erfinv(u.astype(np.float64))


# The problem ----------------------------------------------------------------------------------------------------


def signs(words, n):
    j = np.arange(n)
    return 1.0 - 2.0 * ((words[:, j // 32] >> (j % 32).astype(np.uint32)) & 1)


def chi(x, support):
    return np.prod(x[:, list(support)], axis=1)


def flip_labels(y, key, p):
    return np.where(bits(key, y.shape) < min(round(p * 2**32), 2**32 - 1), -y, y)


def training_sample(problem, key):
    """Inputs and labels of a run's finite sample."""
    root = fold_in(key, SAMPLE)
    x, y = examples(problem, fold_in(root, 0), problem.sample)
    return x, flip_labels(y, fold_in(root, 1), problem.noise)


def batch(problem, size, key, t):
    """Inputs and labels of the update at step t (counted from 0): those that count."""
    if problem.sample is None:
        x, y = examples(problem, fold_in(fold_in(key, DATA), t), size, t)
        stage = stage_of(problem, t)
        noise = problem.noise if stage is None or stage.noise is None else stage.noise
        count = size if stage is None or stage.batch is None else stage.batch
        return x[:count], flip_labels(y, fold_in(fold_in(key, LABELS), t), noise)[:count]
    m, order = problem.sample, fold_in(key, ORDER)
    x, y = training_sample(problem, key)
    if problem.short_last:
        each = math.ceil(m / size)
        chosen = np.argsort(bits(fold_in(order, t // each), (m,)), kind="stable")[t % each * size :][:size]
    elif problem.replacement:
        chosen = bits(fold_in(order, t), (size,)) % m
    else:
        positions = range(t * size, (t + 1) * size)
        passes = {e: np.argsort(bits(fold_in(order, e), (m,)), kind="stable") for e in {p // m for p in positions}}
        chosen = [passes[p // m][p % m] for p in positions]
    return x[chosen], y[chosen]


# Laws of inputs, targets and stages ----------------------------------------------------------------------------


def stage_of(problem, t):
    """The stage that a step is in; None after the last."""
    return next((stage for stage in problem.stages if t < stage.until), None)


def components(law, n):
    """[(weight, how many times of 2^16 each input is -1, pairs (i, j): x_j is then multiplied by x_i)] of a law."""
    kind, unit = type(law).__name__, 2**16
    if kind == "Uniform":
        return [(1.0, np.full(n, unit // 2), [])]
    if kind == "Biased":
        return [(1.0, np.array([round((1 - p) * unit) for p in np.broadcast_to(law.p, n)]), [])]
    if kind == "Mixture":
        first, second = components(law.first, n), components(law.second, n)
        return [(law.rho * w, c, p) for w, c, p in first] + [((1 - law.rho) * w, c, p) for w, c, p in second]
    inner = components(law.law, n)
    if kind == "Active":
        active = np.arange(law.bits) if np.ndim(law.bits) == 0 else np.array(law.bits)
        return [(w, np.where(np.isin(np.arange(n), active), c, 0), [(i, j) for i, j in p if j in active])
                for w, c, p in inner]
    if kind == "Permuted":
        places = np.array(law.places)
        return [(w, c[np.argsort(places)], [(places[i], places[j]) for i, j in p]) for w, c, p in inner]
    if kind == "Pairs":
        second = [j for _, j in law.pairs]
        chance = round((1 - law.correlation) / 2 * unit)
        return [(w, np.where(np.isin(np.arange(n), second), chance, c),
                 [(i, j) for i, j in p if j not in second] + list(law.pairs)) for w, c, p in inner]
    raise ValueError(kind)


def mixed(x):
    """The finaliser of MurmurHash3."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def of_law(law, n, a, b, choice):
    """Signs (count, n) from both words (count, words) of each example."""
    parts = [part for part in components(law, n) if part[0] > 0]
    if len(parts) == 1 and np.all(parts[0][1] == 2**15) and not parts[0][2]:
        return signs(a ^ b, n)
    with np.errstate(over="ignore"):
        digits = [a ^ b] + [mixed(a + np.uint32(i) * (b | np.uint32(1))) for i in range(1, 16)]
    number = sum((signs(digit, n) > 0).astype(int) << (15 - i) for i, digit in enumerate(digits))
    found, ends = np.empty((len(a), n)), np.round(np.cumsum([w for w, _, _ in parts]) * 2.0**32)
    for (_, chances, pairs), low, high in zip(parts, [0, *ends], [*ends[:-1], 2**32], strict=False):
        x = np.where(number < chances, -1.0, 1.0)
        for i, j in pairs:
            x[:, j] *= x[:, i]
        here = (choice >= low) & (choice < high)
        found[here] = x[here]
    return found


def examples(problem, key, count, t=None, evaluation=False):
    """Inputs and clean labels: at a step, of a finite sample (no step), or to be judged on."""
    n, words, kind = problem.n, -(-problem.n // 32), type(problem).__name__
    if kind in ("Parity", "Polynomial"):
        x = signs(bits(key, (count, words)), n)
        return x, label(problem, x)
    if kind == "LeakyParity":
        drawn = bits(key, (count, words + 1))
        x, last = signs(drawn[:, :-1], n), drawn[:, -1]
        leaks = (last >> np.uint32(1)) / 2**31 < round(problem.leak * 2**31) / 2**31
        equal = x.copy()
        equal[:, list(problem.support)] = np.where(last & 1 == 1, -1.0, 1.0)[:, None]
        x = np.where(leaks[:, None], equal, x)
        return x, label(problem, x)
    laws = [*((stage.inputs or problem.inputs) for stage in problem.stages), problem.inputs]
    every = [*laws, problem.evaluation or problem.inputs]
    tasks = problem.target.supports if type(problem.target).__name__ == "Tasks" else ()
    uniform = all(len(parts) == 1 and np.all(parts[0][1] == 2**15) and not parts[0][2]
                  for parts in ([part for part in components(law, n) if part[0] > 0] for law in every))
    stride = words if uniform and not tasks else words + 3
    numbers = np.arange(count * stride, dtype=np.uint32)
    a, b = (word.reshape(count, stride) for word in threefry(key, np.zeros_like(numbers), numbers))
    extra = (a ^ b)[:, words:]
    draw = lambda law: of_law(law, n, a[:, :words], b[:, :words], extra[:, 0] if stride > words else None)  # noqa: E731
    stage = None if t is None else stage_of(problem, t)
    if evaluation:
        x = draw(every[-1])
    elif stage is None:
        x = draw(problem.inputs)
    else:
        place = problem.stages.index(stage)
        x = draw(laws[place])
        if stage.slide:
            start = problem.stages[place - 1].until if place else 0
            moved = np.array([int(word) * (stage.until - start) >> 32 < t - start for word in extra[:, 1]], bool)
            x = np.where(moved[:, None], draw(laws[place + 1]), x)
    if not tasks:
        return x, label(problem, x)
    weights = np.array(problem.target.weights or [1.0] * len(tasks))
    ends = np.minimum(np.round(np.cumsum(weights)[:-1] / weights.sum() * 2.0**32), 2**32 - 1)
    in_turn = evaluation or problem.target.in_turn
    task = np.arange(count) % len(tasks) if in_turn else (extra[:, 2][:, None] >= ends).sum(1)
    patterns = controls(problem.target)
    x[:, : patterns.shape[1]] = patterns[task]
    return x, label(problem, x)


def controls(target):
    """The control bits of each task, (tasks, control bits): -1 where one is on."""
    on = target.controls or [(t,) for t in range(len(target.supports))]
    patterns = np.ones((len(on), 1 + max(map(max, on))))
    for row, places in zip(patterns, on, strict=True):
        row[list(places)] = -1
    return patterns


def label(problem, x):
    """The target at inputs."""
    target = getattr(problem, "target", None)
    kind = "Product" if target is None else type(target).__name__
    if kind == "Product":
        y = chi(x, problem.support)
    elif kind == "Sum":
        y = sum(c * chi(x, support) for c, support in target.terms)
        y = np.where(y >= 0, 1.0, -1.0) if target.sign else y
    elif kind == "Table":
        index = ((x[:, list(target.places)] < 0) << np.arange(len(target.places))).sum(1)
        digits = np.array([int(digit, 16) for digit in target.table])
        y = 1.0 - 2.0 * (digits[index // 4] >> index % 4 & 1)
    elif kind == "Outputs":
        y = np.stack([chi(x, support) for support in target.supports], axis=1)
        y = y if y.shape[1] > 1 else y[:, 0]
    elif kind == "Tasks":
        patterns = controls(target)
        task = [next(t for t, p in enumerate(patterns) if np.array_equal(row[: len(p)], p)) for row in x]
        y = np.array([np.prod(row[list(target.supports[i])]) for row, i in zip(x, task, strict=True)])
    else:
        raise ValueError(kind)
    return getattr(problem, "scale", 1.0) * y
