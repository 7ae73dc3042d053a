"""Steps of the native kernel in plain float64 NumPy, with random numbers from jax.random."""

import functools
import math

import jax
import numpy as np

STREAMS = {"data": 1, "labels": 2, "evaluation": 3, "sample": 4, "order": 5, "noise": 6}


def activate(name, p, z):
    """Value and derivative."""
    if name == "clip":
        return np.clip(z, 0, p[0]), ((z > 0) & (z < p[0])).astype(float)
    if name == "power":
        return z ** p[0], p[0] * z ** (p[0] - 1)
    if name in ("zigzag", "triangle"):
        s = (z - p[0]) / 2
        m = np.floor(s) if name == "triangle" else np.clip(np.floor(s), -p[0], -1)
        sign = 1 - 2 * (m % 2)
        return sign * (1 - 2 * (s - m)), -sign
    if name == "polynomial":
        poly = np.polynomial.Polynomial(p)
        return poly(z), poly.deriv()(z)
    if name == "sinusoid":
        angle = np.pi / 2 * (p[0] * z - p[1])
        return np.cos(angle), -np.pi / 2 * p[0] * np.sin(angle)
    cdf = 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))
    return z * cdf, cdf + z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def lose(name, p, f, y):
    """Value and derivative with respect to f."""
    if name == "hinge":
        return np.maximum(0, p[0] - y * f), np.where(y * f < p[0], -y, 0)
    if name == "square":
        return (y - f) ** 2, 2 * (f - y)
    if name == "logistic":
        return p[0] * np.logaddexp(0, -y * f), -p[0] * y / (1 + np.exp(y * f))
    if name == "clipped-logistic":
        value = np.logaddexp(0, -y * f)
        return np.clip(value, *p), np.where((value > p[0]) & (value < p[1]), -y / (1 + np.exp(y * f)), 0)
    if name == "correlation":
        return -y * f, -y
    return np.abs(y - f), np.sign(f - y)


def network(cfg, theta, x):
    """Output f (..., samples), and a function from d loss / d f to the gradients of the summed loss."""
    x = (1 - x) / 2 if cfg.get("bits") else x
    z = x @ theta["W"] + theta["b"][..., None, :]
    if cfg["family"] == "polynet":
        f = z.prod(-1)
        df_dz = np.stack([np.delete(z, i, -1).prod(-1) for i in range(z.shape[-1])], -1)
    else:
        h, df_dz = activate(cfg["activation"], cfg["activation_params"], z)
        f = h[..., 0]
    if cfg["family"] == "mlp":
        f = (h * theta["u"][..., None, :]).sum(-1) + theta["c"][..., None]
        df_dz = df_dz * theta["u"][..., None, :]

    def backward(g):
        dz = g[..., None] * df_dz
        head = {"u": (g[..., None] * h).sum(-2), "c": g.sum(-1)} if cfg["family"] == "mlp" else {}
        return {"W": np.swapaxes(x, -1, -2) @ dz, "b": dz.sum(-2), **head}

    return f, backward


class Factors:
    """A schedule as the kernel asks for it, block by block; 1 after the given factors."""

    def __init__(self, factors, size):
        self.factors, self.size, self.asked = np.asarray(factors, np.float32), size, []

    def __getitem__(self, steps):
        return self.factors[steps]

    def __call__(self, number):
        self.asked.append(number)
        known = self.factors[number * self.size : (number + 1) * self.size]
        return np.concatenate([known, np.ones(self.size - len(known), np.float32)])


def one_step(cfg, theta, x, y, lr, steps, noise):
    """theta, x and y have a leading axis: the steps. lr is the run's rate, noise a dict of tau * xi."""
    f, backward = network(cfg, theta, x)
    gradients = backward(lose(cfg["loss"], cfg["loss_params"], f, y)[1] / cfg["batch"])
    schedule = np.ones(len(steps)) if cfg["schedule"] is None else cfg["schedule"][steps].astype(float)
    new = dict(theta)
    for name, gradient in gradients.items():
        rate = cfg["rates"][name in ("u", "c")]
        lr_l = (lr * schedule * rate).reshape((-1,) + (1,) * (gradient.ndim - 1))
        keep = 1 - lr_l * cfg["decay_coupled"] - (cfg["decay_plain"] if rate else 0)
        new[name] = theta[name] * keep - lr_l * (gradient + noise.get(name, 0))
    return new


def stream(key, name):
    return jax.random.fold_in(jax.random.wrap_key_data(np.asarray(key, np.uint32)), STREAMS[name])


def bits(key, *shape):
    return np.asarray(jax.random.bits(key, shape, "uint32"))


@functools.cache  # compiled once per shape
def drawer(draw, *shape):
    return jax.jit(jax.vmap(lambda key, step: draw(jax.random.fold_in(key, step), shape), (None, 0)))


def bits_of_steps(key, steps, *shape):
    return np.asarray(drawer(jax.random.bits, *shape)(key, np.asarray(steps, np.uint32)))


@functools.cache
def normal_of_leaf(leaf):
    return lambda step_key, shape: jax.random.normal(jax.random.fold_in(step_key, leaf), shape)


def normal_of_steps(key, steps, leaf, shape):
    draw = drawer(normal_of_leaf(leaf), *shape)
    return np.asarray(draw(stream(key, "noise"), np.asarray(steps, np.uint32)), float)


def signs(words, n):
    return 1.0 - 2.0 * ((words[..., np.arange(n) // 32] >> (np.arange(n) % 32).astype(np.uint32)) & 1)


def parity(words, mask):
    return 1.0 - 2.0 * (np.bitwise_count(words & mask).sum(-1) % 2)


def batches(cfg, run, steps):
    """Inputs and labels of these steps."""
    n, B, m, words = cfg["n"], cfg["batch"], cfg["sample"], len(run["mask"])
    if m == 0:
        data = bits_of_steps(stream(run["key"], "data"), steps, B, words)
        y = parity(data, run["mask"])
        extra = bits_of_steps(stream(run["key"], "labels"), steps, B)
        y = np.where(extra < run["flip"], -y, y)
        return signs(data, n), y
    key = stream(run["key"], "sample")
    data = bits(jax.random.fold_in(key, 0), m, words)
    labels = parity(data, run["mask"])
    labels = np.where(bits(jax.random.fold_in(key, 1), m) < run["flip"], -labels, labels)
    order = stream(run["key"], "order")
    if cfg["replacement"]:
        index = bits_of_steps(order, steps, B) % m
    else:
        passes = range(((max(steps) + 1) * B + m - 1) // m)
        endless = np.argsort(bits_of_steps(order, passes, m), axis=1, kind="stable").ravel()
        index = endless[np.asarray(steps)[:, None] * B + np.arange(B)]
    return signs(data[index], n), labels[index]


def evaluation(cfg, run, theta, t):
    """Accuracy and mean loss on the evaluation sample after t updates."""
    key = jax.random.fold_in(stream(run["key"], "evaluation"), t if cfg["eval_fresh"] else 0)
    words = bits(key, cfg["eval_size"], len(run["mask"]))
    y = parity(words, run["mask"])
    f, _ = network(cfg, {k: v.astype(float) for k, v in theta.items()}, signs(words, cfg["n"]))
    return np.mean(y * f > 0), np.mean(lose(cfg["loss"], cfg["loss_params"], f, y)[0])
