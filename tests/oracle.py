"""The slow, obvious float64 reference: one run at a time, written from the definitions, sharing no code with engines.

It takes initial params from outside (all engines start from the same ones); random numbers, inputs and labels are those
of ``oracle_data.py``.
"""

from __future__ import annotations

import math

import numpy as np
from oracle_data import EVALUATION, NOISE, batch, examples, fold_in, normal, run_key, stage_of, training_sample
from oracle_data import bits as bits
from oracle_data import chi as chi
from oracle_data import signs as signs

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
