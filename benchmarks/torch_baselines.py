"""What paritylab is compared with: PyTorch, one model in a loop, and PyTorch, many models at once.

Both return ``advance()``, which trains for a moment and gives the number of updates done, over all models.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from workloads import EVAL_EVERY, EVAL_SIZE, IDLE_RATE, SAMPLE, TASKS, K, Workload

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


class Data:
    """Batches and labels of many models, each with data of its own: fresh, or in passes through a finite sample."""

    def __init__(self, work: Workload, device: str, models: int) -> None:
        self.work, self.device, self.models = work, device, models
        self.sample = self.draw(SAMPLE) if work.data == "sample" else None
        self.order, self.at = torch.empty(0), SAMPLE

    def draw(self, size: int) -> tuple[Tensor, Tensor]:
        """Fresh inputs and labels, (models, size, n) and (models, size)."""
        x = draw((self.models, size), self.work.n, self.device)
        if self.work.data != "tasks":
            return x, parity(x)
        task = torch.randint(len(TASKS), (self.models, size, 1), device=self.device)
        x[..., : len(TASKS)] = 1 - 2 * (torch.arange(len(TASKS), device=self.device) == task).float()
        supports = torch.tensor(TASKS, device=self.device)
        return x, x.gather(-1, supports[task[..., 0]]).prod(-1)

    def batch(self) -> tuple[Tensor, Tensor]:
        if self.sample is None:
            return self.draw(self.work.batch)
        if self.at + self.work.batch > SAMPLE:
            self.order, self.at = torch.rand(self.models, SAMPLE, device=self.device).argsort(1), 0
        chosen = self.order[:, self.at : self.at + self.work.batch]
        self.at += self.work.batch
        x, y = self.sample
        return x.gather(1, chosen[..., None].expand(-1, -1, self.work.n)), y.gather(1, chosen)


class Rule:
    """An optimiser that moves params in place, as :mod:`torch.optim` has it, all models at once."""

    def __init__(self, rule: str, params: list[Tensor]) -> None:
        self.rule, self.params, self.steps = rule, params, 0
        kept = {"sgd": 0, "momentum": 1, "adam": 2}[rule]
        self.memory = [[torch.zeros_like(p) for _ in range(kept)] for p in params]

    def begin(self) -> None:
        self.steps += 1

    def move(self, i: int, gradient: Tensor) -> None:
        param, memory = self.params[i], self.memory[i]
        if self.rule == "sgd":
            param.sub_(gradient, alpha=IDLE_RATE)
        elif self.rule == "momentum":
            param.sub_(memory[0].mul_(0.9).add_(gradient), alpha=IDLE_RATE)
        else:
            mean = memory[0].lerp_(gradient, 0.1)
            square = memory[1].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            scale = (1 - 0.999**self.steps) ** 0.5
            param.addcdiv_(mean, square.sqrt().add_(1e-8 * scale), value=-IDLE_RATE * scale / (1 - 0.9**self.steps))


def many_models(work: Workload, device: str, models: int) -> Advance:
    """Many models: batched matrix products and a backward pass written by hand, each model on data of its own."""
    bounds = [fan_in**-0.5 for fan_in, _ in work.layers]
    uniform = [(torch.rand(models, a + 1, b, device=device) * 2 - 1) for a, b in work.layers]
    weights = [bound * u[:, 1:] for bound, u in zip(bounds, uniform, strict=True)]
    biases = [bound * u[:, :1] for bound, u in zip(bounds, uniform, strict=True)]
    data, rule = Data(work, device, models), Rule(work.rule, [*weights, *biases])
    held_out, held_out_labels = data.draw(EVAL_SIZE)

    def forward(x: Tensor) -> tuple[list[Tensor], Tensor]:
        """The input of every layer, and the outputs."""
        inputs = [x]
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            inputs.append(torch.baddbmm(b, inputs[-1], w).relu_())
        return inputs, torch.baddbmm(biases[-1], inputs[-1], weights[-1])[..., 0]

    def update() -> None:
        x, y = data.batch()
        rule.begin()
        inputs, f = forward(x)
        delta = torch.where(y * f < 1, -y / work.batch, 0.0)[..., None]
        for i in reversed(range(len(weights))):
            below = torch.bmm(delta, weights[i].mT).mul_(inputs[i] > 0) if i else delta
            if work.rule == "sgd":
                weights[i].baddbmm_(inputs[i].mT, delta, alpha=-IDLE_RATE)
            else:
                rule.move(i, torch.bmm(inputs[i].mT, delta))
            rule.move(len(weights) + i, delta.sum(1, keepdim=True))
            delta = below

    def advance() -> int:
        for _ in range(EVAL_EVERY):
            update()
        solved = (forward(held_out)[1] * held_out_labels > 0).all(1)
        assert not solved.any().item()
        return EVAL_EVERY * models

    return torch.inference_mode()(advance)
