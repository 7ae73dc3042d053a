"""What paritylab is compared with: PyTorch, one model in a loop, and PyTorch, many models at once.

Both return ``advance()``, which trains for a moment and gives the number of updates done, over all models.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from workloads import EVAL_EVERY, EVAL_SIZE, IDLE_RATE, K, Workload

Advance = Callable[[], int]


def signs(words: Tensor, n: int) -> Tensor:
    """Random words (..., 1) to inputs (..., n) of -1 and +1: faster than drawing every input by itself."""
    return 1 - 2 * ((words >> torch.arange(n, device=words.device)) & 1).float()


def draw(shape: tuple[int, ...], n: int, device: str) -> Tensor:
    """Uniform inputs in {-1, +1}^n."""
    return signs(torch.empty(*shape, 1, dtype=torch.int64, device=device).random_(), n)


def parity(x: Tensor) -> Tensor:
    return x[..., :K].prod(-1)


def one_model(work: Workload, device: str) -> Advance:
    """One model, as a careful user writes it: nn.Module, autograd, torch.optim.SGD."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in work.layers:
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    model = nn.Sequential(*layers[:-1]).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=IDLE_RATE)
    held_out = draw((EVAL_SIZE,), work.n, device)
    held_out_labels = parity(held_out)

    def advance() -> int:
        for _ in range(EVAL_EVERY):
            x = draw((work.batch,), work.n, device)
            loss = torch.relu(1 - parity(x) * model(x)[:, 0]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            solved = (model(held_out)[:, 0] * held_out_labels > 0).all()
        assert not solved.item()
        return EVAL_EVERY

    return advance


def many_models(work: Workload, device: str, models: int) -> Advance:
    """Many models: batched matrix products and a backward pass written by hand, each model on data of its own."""
    bounds = [fan_in**-0.5 for fan_in, _ in work.layers]
    uniform = [(torch.rand(models, a + 1, b, device=device) * 2 - 1) for a, b in work.layers]
    weights = [bound * u[:, 1:] for bound, u in zip(bounds, uniform, strict=True)]
    biases = [bound * u[:, :1] for bound, u in zip(bounds, uniform, strict=True)]
    held_out = draw((models, EVAL_SIZE), work.n, device)
    held_out_labels = parity(held_out)

    def forward(x: Tensor) -> tuple[list[Tensor], Tensor]:
        """The input of every layer, and the outputs."""
        inputs = [x]
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            inputs.append(torch.baddbmm(b, inputs[-1], w).relu_())
        return inputs, torch.baddbmm(biases[-1], inputs[-1], weights[-1])[..., 0]

    def update() -> None:
        x = draw((models, work.batch), work.n, device)
        y = parity(x)
        inputs, f = forward(x)
        delta = torch.where(y * f < 1, -y / work.batch, 0.0)[..., None]
        for i in reversed(range(len(weights))):
            below = torch.bmm(delta, weights[i].mT).mul_(inputs[i] > 0) if i else delta
            weights[i].baddbmm_(inputs[i].mT, delta, alpha=-IDLE_RATE)
            biases[i].sub_(delta.sum(1, keepdim=True), alpha=IDLE_RATE)
            delta = below

    def advance() -> int:
        for _ in range(EVAL_EVERY):
            update()
        solved = (forward(held_out)[1] * held_out_labels > 0).all(1)
        assert not solved.any().item()
        return EVAL_EVERY * models

    return torch.inference_mode()(advance)
