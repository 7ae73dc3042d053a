"""Many Transformers of barak2022 at once in PyTorch: ``pl.Transformer`` by another library, vmapped."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch_baselines import Advance, Data, Rule
from workloads import EVAL_EVERY, EVAL_SIZE, Workload

Params = dict[str, Tensor]


def shapes(n: int, d: int, inner: int, hidden: int) -> dict[str, tuple[int, ...]]:
    return {"token": (3, d), "position": (n, d), "query": (d, inner), "key": (d, inner), "value": (d, inner),
            "out": (inner, d), "up": (d, hidden), "up_bias": (hidden,), "down": (hidden, d), "down_bias": (d,),
            "head": (d, 1)}


def outputs(p: Params, x: Tensor, heads: int) -> Tensor:
    """f of a batch: attention read at [CLS], then an MLP block."""
    n, inner = x.shape[-1], p["query"].shape[1]
    size = inner // heads
    cls = p["token"][2]
    tokens = torch.cat([p["position"] + p["token"][0], p["position"] + p["token"][1], cls[None]])
    query = (cls @ p["query"]).reshape(heads, size)
    keys, values = ((tokens @ p[name]).reshape(-1, heads, size) for name in ("key", "value"))
    logits = torch.einsum("thd,hd->th", keys, query) / size**0.5
    sign = x[..., None]
    present = torch.where(sign > 0, logits[:n], logits[n : 2 * n])
    largest = torch.maximum(present.amax(1), logits[2 * n]).detach()
    weight, own = (present - largest[:, None]).exp(), (logits[2 * n] - largest).exp()
    mean, half = (values[:n] + values[n : 2 * n]) / 2, (values[:n] - values[n : 2 * n]) / 2
    total = torch.einsum("bnh,nhd->bhd", weight, mean) + torch.einsum("bnh,nhd->bhd", weight * sign, half)
    total = total + own[..., None] * values[2 * n]
    read = (total / (weight.sum(1) + own)[..., None]).reshape(x.shape[0], inner)
    z = cls + read @ p["out"]
    z = z + torch.nn.functional.gelu(z @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]
    return (z @ p["head"])[..., 0]


def many_transformers(work: Workload, device: str, models: int, d: int = 1024, heads: int = 128) -> Advance:
    """Adam on each model's own fresh batches."""
    made = {name: torch.randn(models, *shape, device=device) / max(shape[0], 1) ** 0.5
            for name, shape in shapes(work.n, d, 8 * heads, 4 * d).items()}
    data, rule = Data(work, device, models), Rule(work.rule, list(made.values()))
    held_out, labels = data.draw(EVAL_SIZE)

    def loss(p: Params, x: Tensor, y: Tensor) -> Any:
        return torch.relu(1 - y * outputs(p, x, heads)).mean()

    gradients = vmap(grad(loss))
    judged = vmap(lambda p, x: outputs(p, x, heads))

    def advance() -> int:
        for _ in range(EVAL_EVERY):
            rule.begin()
            found = gradients(made, *data.batch())
            for i, name in enumerate(made):
                rule.move(i, found[name])
        with torch.no_grad():
            solved = (judged(made, held_out) * labels > 0).all(1)
        assert not solved.any().item()
        return EVAL_EVERY * models

    return advance
