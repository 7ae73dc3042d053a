"""The slow, obvious float64 reference: one run at a time, written from the definitions, sharing no code with engines.

It takes initial params from outside (all engines start from the same ones) and draws every random number itself.
"""

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


# Activations and losses: value and derivative -------------------------------------------------------------------


def activation(spec, z):
    name, _, tail = spec.partition(":")
    args = [float(a) for a in tail.split(",")] if tail else []
    if name in ("relu", "relu6", "clipped-relu"):
        top = {"relu": np.inf, "relu6": 6.0}.get(name, args[0] if args else 1.0)
        return np.clip(z, 0, top), ((z > 0) & (z < top)).astype(float)
    if name == "power":
        return z ** args[0], args[0] * z ** (args[0] - 1)
    if name in ("zigzag", "infinite-zigzag"):
        k = int(args[0])
        low, high = (-k, k) if name == "zigzag" else (k - 4000, k + 4000)
        nodes = np.arange(low, high + 1, 2.0)
        heights = np.where(((k - nodes) / 2) % 2 == 0, 1.0, -1.0)
        piece = np.clip(np.searchsorted(nodes, z, side="right") - 1, 0, len(nodes) - 2)
        slope = (heights[piece + 1] - heights[piece]) / 2
        return heights[piece] + slope * (z - nodes[piece]), slope
    if name == "oscillating":
        k = int(args[0])
        nodes = k - 2.0 * np.arange(k + 1)
        p = np.polynomial.Polynomial.fit(nodes, (-1.0) ** np.arange(k + 1), k).convert()
        return p(z), p.deriv()(z)
    if name == "sinusoid":
        scale = args[1] if len(args) > 1 else 1.0
        angle = math.pi / 2 * scale * z + math.pi / 2 * (1 - args[0])
        return np.sin(angle), math.pi / 2 * scale * np.cos(angle)
    if name == "gelu":
        from scipy.special import erf

        cdf = (1 + erf(z / math.sqrt(2))) / 2
        return z * cdf, cdf + z * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    if name == "tanh":
        return np.tanh(z), 1 / np.cosh(z) ** 2
    raise ValueError(spec)


def loss(spec, f, y):
    name, _, tail = spec.partition(":")
    arg = float(tail) if tail else 1.0
    if name == "hinge":
        return np.maximum(0, arg - y * f), np.where(y * f < arg, -y, 0.0)
    if name == "square":
        return (y - f) ** 2, 2 * (f - y)
    if name == "logistic":
        return arg * np.log1p(np.exp(-y * f)), -arg * y / (1 + np.exp(y * f))
    if name == "clipped-logistic":
        p = 1 / (1 + np.exp(-y * f))
        low, high = arg, float(np.float32(1 - arg))
        return -np.log(np.clip(p, low, high)), np.where((p > low) & (p < high), -y * (1 - p), 0.0)
    if name == "correlation":
        return -y * f, -y
    if name == "l1":
        return np.abs(y - f), np.sign(f - y)
    raise ValueError(spec)


def loss_weights(problem, y):
    """What each loss of a batch counts: the mean is over examples and outputs, and some count for nothing."""
    weights = np.ones(y.shape)
    for j, share in enumerate(getattr(getattr(problem, "target", None), "counted", None) or ()):
        weights.reshape(len(y), -1)[math.floor(share * len(y) + 0.5) :, j] = 0
    return weights / y.size


# Networks: outputs and gradients of the mean loss ---------------------------------------------------------------


def forward(network, params, x):
    return FORWARD[type(network).__name__](network, params, x)


def read(network, x):
    """Inputs as the first layer of an MLP has them: signs, or bits, 1 for -1."""
    return {"signs": x, "bits": (x < 0).astype(float)}[network.inputs]


def mlp_gradient(network, params, x, loss_spec, y, weights):
    values, slopes = [read(network, x)], []
    for layer in params[:-1]:
        value, slope = activation(network.activation.spec, values[-1] @ layer["w"] + layer.get("b", 0.0))
        values.append(value)
        slopes.append(slope)
    f = forward(network, params, x)
    back = (loss(loss_spec, f, y)[1] * weights).reshape(len(x), -1)
    out = []
    for i in range(len(params) - 1, -1, -1):
        g = {"w": values[i].T @ back}
        if "b" in params[i]:
            g["b"] = back.sum(0)
        out.insert(0, g)
        if i:
            back = (back @ params[i]["w"].T) * slopes[i - 1]
    return out


def neuron_gradient(network, params, x, loss_spec, y, weights):
    f, slope = activation(network.activation.spec, (x @ params[0]["w"])[:, 0] + params[0]["b"][0])
    back = loss(loss_spec, f, y)[1] * weights * slope
    return [{"w": (x.T @ back)[:, None], "b": back.sum(0, keepdims=True)}]


def polynet_gradient(network, params, x, loss_spec, y, weights):
    z = x @ params[0]["w"] + params[0]["b"]
    others = np.stack([np.prod(np.delete(z, i, axis=1), axis=1) for i in range(z.shape[1])], axis=1)
    back = (loss(loss_spec, z.prod(1), y)[1] * weights)[:, None] * others
    return [{"w": x.T @ back, "b": back.sum(0)}]


def numerical_gradient(network, params, x, loss_spec, y, weights, h=1e-5):
    """Central differences on every coordinate, for the networks without a formula above."""

    def total():
        return (loss(loss_spec, forward(network, params, x), y)[0] * weights).sum()

    def differentiate(array):
        g = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            old = array[index]
            array[index] = old + h
            up = total()
            array[index] = old - h
            g[index] = (up - total()) / (2 * h)
            array[index] = old
        return g

    return tree_map(differentiate, params)


def transformer(network, p, x):
    """Every token projected, as the paper writes it."""
    batch_size, n = x.shape
    tokens = np.where(x[..., None] > 0, p["token"][0], p["token"][1]) + p["position"]
    cls = np.broadcast_to(p["token"][2], (batch_size, 1, network.d_emb))
    tokens = np.concatenate([tokens, cls], axis=1)

    def heads(name):
        return (tokens @ p[name]).reshape(batch_size, n + 1, network.heads, network.d_attn)

    q, k, v = heads("query")[:, -1], heads("key"), heads("value")
    scores = np.einsum("bhd,bthd->bht", q, k) / math.sqrt(network.d_attn)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    attended = np.einsum("bht,bthd->bhd", weights, v).reshape(batch_size, -1)
    z = cls[:, 0] + attended @ p["out"]
    up, down = p["mlp"]
    z = z + activation("gelu", z @ up["w"] + up["b"])[0] @ down["w"] + down["b"]
    return (z @ p["head"])[:, 0]


def mlp(network, params, x):
    x = read(network, x)
    for layer in params[:-1]:
        x = activation(network.activation.spec, x @ layer["w"] + layer.get("b", 0.0))[0]
    out = x @ params[-1]["w"] + params[-1].get("b", 0.0)
    return out if network.outputs > 1 else out[:, 0]


def disjoint_polynet(network, params, x):
    blocks = np.split(x, network.degree, axis=1)
    return np.prod([b @ params[0]["w"][:, i] for i, b in enumerate(blocks)], axis=0)


FORWARD = {
    "MLP": mlp,
    "Neuron": lambda net, p, x: activation(net.activation.spec, (x @ p[0]["w"])[:, 0] + p[0]["b"][0])[0],
    "PolyNet": lambda net, p, x: np.prod(x @ p[0]["w"] + p[0]["b"], axis=1),
    "DisjointPolyNet": disjoint_polynet,
    "Transformer": transformer,
}
GRADIENT = {"MLP": mlp_gradient, "Neuron": neuron_gradient, "PolyNet": polynet_gradient}


# Training -------------------------------------------------------------------------------------------------------


def tree_map(function, *trees):
    first = trees[0]
    if isinstance(first, dict):
        return {name: tree_map(function, *(t[name] for t in trees)) for name in first}
    if isinstance(first, (list, tuple)):
        return [tree_map(function, *parts) for parts in zip(*trees, strict=True)]
    return function(*trees)


def leaves(tree):
    """The arrays of a tree, dictionaries by sorted name, as JAX orders them."""
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def spread(rates, params):
    """One rate for each array."""
    parts = [1.0] * len(params) if rates is None else rates
    if isinstance(params, dict):
        table = dict.fromkeys(params, 1.0) if rates is None else dict(rates)
        return {name: tree_map(lambda _, name=name: table[name], params[name]) for name in params}
    return [tree_map(lambda _, rate=rate: rate, part) for rate, part in zip(parts, params, strict=True)]


def train(setup, seed, run, params, steps):
    """The params after each of ``steps`` updates, from the given initial params."""
    problem, learner = setup.problem, setup.learner
    network, opt = learner.network, learner.optimiser
    gradient = GRADIENT.get(type(network).__name__, numerical_gradient)
    key = run_key(seed, run)
    params = tree_map(lambda p: np.array(p, np.float64), params)
    m = tree_map(np.zeros_like, params)
    v = tree_map(np.zeros_like, params)
    history = []
    for t in range(steps):
        x, y = batch(problem, learner.batch, key, t)
        g = gradient(network, params, x, learner.loss.spec, y, loss_weights(problem, y))
        if opt.skip_satisfied and not any(leaf.any() for leaf in leaves(g)):
            history.append(params)
            continue
        if opt.noise > 0:
            root = fold_in(fold_in(key, NOISE), t)
            numbered = iter(range(len(leaves(g))))
            noise = {id(leaf): normal(fold_in(root, next(numbered)), leaf.shape) for leaf in leaves(g)}
            g = tree_map(lambda leaf, noise=noise: leaf + opt.noise * noise[id(leaf)], g)
        rates = spread(opt.rates, params)
        stage = stage_of(problem, t)
        factor = float(opt.schedule(t)) * (stage.lr if stage else 1.0)
        lr = tree_map(lambda rate, factor=factor: opt.lr * factor * rate, rates)
        if opt.clip is not None:
            free = tree_map(lambda g, rate: np.sum(g * g) * (rate != 0), g, rates)
            norm = np.sqrt(sum(float(leaf) for leaf in leaves(free)))
            g = tree_map(lambda g, norm=norm: g * min(1.0, opt.clip / norm) if norm else g, g)
        if opt.decay_form == "coupled":
            g = tree_map(lambda g, p: g + opt.weight_decay * p, g, params)
        kind = type(opt).__name__
        if kind == "SGD":
            m = tree_map(lambda m, g: opt.momentum * m + g, m, g)
            step = tree_map(lambda m, g: g + opt.momentum * m, m, g) if opt.nesterov else m
        elif kind == "SignSGD":
            step = tree_map(lambda m, g: np.sign(opt.b1 * m + (1 - opt.b1) * g), m, g)
            m = tree_map(lambda m, g: opt.b2 * m + (1 - opt.b2) * g, m, g)
        elif kind == "Adam":
            m = tree_map(lambda m, g: opt.b1 * m + (1 - opt.b1) * g, m, g)
            v = tree_map(lambda v, g: opt.b2 * v + (1 - opt.b2) * g * g, v, g)
            c1, c2 = 1 - opt.b1 ** (t + 1), 1 - opt.b2 ** (t + 1)
            step = tree_map(lambda m, v, c1=c1, c2=c2: m / c1 / (np.sqrt(v / c2) + opt.eps), m, v)
        elif kind == "RMSProp":
            v = tree_map(lambda v, g: opt.alpha * v + (1 - opt.alpha) * g * g, v, g)
            m = tree_map(lambda m, v, g: opt.momentum * m + g / (np.sqrt(v) + opt.eps), m, v, g)
            step = m
        else:
            raise ValueError(kind)
        if opt.decay_form == "decoupled":
            params = tree_map(lambda p, a: p - a * opt.weight_decay * p, params, lr)
        elif opt.decay_form == "plain":
            params = tree_map(lambda p, rate: p - opt.weight_decay * p * (rate != 0), params, rates)
        params = tree_map(lambda p, s, a: p - a * s, params, step, lr)
        history.append(params)
    return history


def evaluate(setup, seed, run, params, t):
    """Accuracy and mean loss on the run's evaluation sample after t updates."""
    problem, protocol = setup.problem, setup.protocol
    key = fold_in(fold_in(run_key(seed, run), EVALUATION), t if protocol.fresh else 0)
    return score(setup, params, *examples(problem, key, protocol.eval_size, evaluation=True))


def skills(setup, seed, run, params, t):
    """Of each task, or output, the covariance of output and label sign, over the size of labels."""
    problem, protocol = setup.problem, setup.protocol
    key = fold_in(fold_in(run_key(seed, run), EVALUATION), t if protocol.fresh else 0)
    x, y = examples(problem, key, protocol.eval_size, evaluation=True)
    f, tasks = forward(setup.learner.network, params, x), problem.tasks or 1
    pairs = list(zip(f.T, np.sign(y).T, strict=True)) if y.ndim > 1 else [
        (f[t::tasks], np.sign(y[t::tasks])) for t in range(tasks)]
    return [float(np.mean((f - f.mean()) * (s - s.mean()))) / abs(getattr(problem, "scale", 1.0)) for f, s in pairs]


def evaluate_train(setup, seed, run, params):
    """Accuracy and mean loss on the run's finite training sample."""
    return score(setup, params, *training_sample(setup.problem, run_key(seed, run)))


def score(setup, params, x, y):
    f, within = forward(setup.learner.network, params, x), setup.protocol.within
    right = f * y > 0 if within is None else np.abs(f - y) <= within
    right = right.all(axis=1) if right.ndim > 1 else right
    return float(np.mean(right)), float(loss(setup.learner.loss.spec, f, y)[0].mean())


def judge(setup, seed, run, params):
    """(status, t_c, steps) of a whole run, checked as the Protocol says; statuses by name."""
    protocol = setup.protocol
    history = train(setup, seed, run, params, protocol.max_steps)
    streak = 0
    for t in range(1, protocol.max_steps + 1):
        if t % protocol.eval_every and t != protocol.max_steps:
            continue
        if not all(np.isfinite(leaf).all() for leaf in leaves(history[t - 1])):
            return "diverged", -1, t
        accuracy, _ = evaluate(setup, seed, run, history[t - 1], t)
        streak = streak + 1 if accuracy >= protocol.threshold - 1e-12 else 0
        if streak == protocol.consecutive:
            return "solved", t, t
    return "censored", -1, protocol.max_steps
