"""Trained networks as ONNX models: an input ``x`` (rows, n), an output ``f`` (rows,), and the params as initializers.

Where a network has several outputs, ``f`` is (rows, outputs).

Written node by node with ``onnx`` alone, which needs neither PyTorch nor its exporter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

from paritylab import __version__
from paritylab.errors import InvalidInput
from paritylab.setups.networks import MLP, DisjointPolyNet, Neuron, PolyNet, Transformer
from paritylab.setups.networks.activations import Activation

OPSET, IR = 20, 9
"""Of 2023: the first operators with a Gelu, and the format of that time, so that runtimes of the last years read it."""


class Nodes:
    """Nodes in the making; a value is known by its name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, array: Any, name: str | None = None) -> str:
        name = name or f"constant_{len(self.constants)}"
        self.constants[name] = np.array(array, order="C")
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def summed(self, value: str, axis: int) -> str:
        return self("ReduceSum", value, self.constant(np.array([axis])), keepdims=0)

    def reshaped(self, value: str, *shape: int) -> str:
        return self("Reshape", value, self.constant(np.array(shape)))


def model(network: Any, params: Mapping[str, np.ndarray], n: int, about: Mapping[str, Any]) -> ModelProto:
    """The checked model of a network with these params; ``about`` goes into its metadata, as texts."""
    graph = Nodes()
    last = _outputs(graph, network, params, n)
    several = [network.outputs] if getattr(network, "outputs", 1) > 1 else []
    graph.nodes.append(helper.make_node("Identity", [last], ["f"]))
    made = helper.make_model(
        helper.make_graph(
            graph.nodes, type(network).__name__,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", n])],
            [helper.make_tensor_value_info("f", TensorProto.FLOAT, ["rows", *several])],
            [numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="paritylab",
        producer_version=__version__,
    )
    helper.set_model_props(made, {name: value if isinstance(value, str) else json.dumps(value)
                                  for name, value in about.items()})
    checker.check_model(made, full_check=True)
    return made


def _outputs(graph: Nodes, network: Any, params: Mapping[str, np.ndarray], n: int) -> str:
    if isinstance(network, MLP):
        value = "x" if network.inputs == "signs" else _bits(graph, "x")
        for i in range(len(network.widths)):
            value = _activated(graph, network.activation, _linear(graph, value, params, i))
        value = _linear(graph, value, params, len(network.widths))
        return value if network.outputs > 1 else _column(graph, value)
    if isinstance(network, Neuron):
        return _activated(graph, network.activation, _column(graph, _linear(graph, "x", params, 0)))
    if isinstance(network, PolyNet):
        return _product(graph, _linear(graph, "x", params, 0))
    if isinstance(network, DisjointPolyNet):
        w = np.zeros((n, network.degree), np.float32)  # a block of inputs for each column
        rows = n // network.degree
        for i in range(network.degree):
            w[i * rows : (i + 1) * rows, i] = params["0.w"][:, i]
        return _product(graph, graph("MatMul", "x", graph.constant(w, "0.w")))
    if isinstance(network, Transformer):
        return _transformer(graph, network, params, n)
    raise InvalidInput(f"no ONNX model can be made of a {type(network).__name__}; allowed: MLP, Neuron, PolyNet,"
                       " DisjointPolyNet, Transformer, with activations that have a name")


def _linear(graph: Nodes, value: str, params: Mapping[str, np.ndarray], i: int) -> str:
    value = graph("MatMul", value, graph.constant(params[f"{i}.w"], f"{i}.w"))
    return graph("Add", value, graph.constant(params[f"{i}.b"], f"{i}.b")) if f"{i}.b" in params else value


def _bits(graph: Nodes, value: str) -> str:
    return graph("Div", graph("Sub", graph.number(1), value), graph.number(2))


def _column(graph: Nodes, value: str) -> str:
    return graph("Squeeze", value, graph.constant(np.array([-1])))


def _product(graph: Nodes, value: str) -> str:
    return graph("ReduceProd", value, graph.constant(np.array([-1])), keepdims=0)


def _transformer(graph: Nodes, network: Transformer, params: Mapping[str, np.ndarray], n: int) -> str:
    """As :class:`paritylab.Transformer` has it: scores and values of the 2n + 1 tokens are tables."""
    heads, size = network.heads, network.d_attn
    cls = graph.constant(params["token"][2], "token.cls")

    def matrix(name: str) -> str:
        return graph.constant(params[name], name)

    positions = graph.constant(params["position"], "position")
    plus, minus = (graph("Add", positions, graph.constant(params["token"][i], f"token.{i}")) for i in (0, 1))
    signs = graph("Unsqueeze", graph("Greater", "x", graph.number(0)), graph.constant(np.array([-1])))
    tokens = graph("Where", signs, plus, minus)  # (rows, n, d)
    zeros = graph("Mul", graph("Slice", tokens, *(graph.constant(np.array([i])) for i in (0, 1, 1))), graph.number(0))
    tokens = graph("Concat", tokens, graph("Add", zeros, cls), axis=1)
    query = graph.reshaped(graph("MatMul", cls, matrix("query")), heads, size)
    keys, values = (graph.reshaped(graph("MatMul", tokens, matrix(name)), -1, n + 1, heads, size)
                    for name in ("key", "value"))
    logits = graph("Div", graph.summed(graph("Mul", keys, query), -1), graph.number(size**0.5))
    weights = graph("Unsqueeze", graph("Softmax", logits, axis=1), graph.constant(np.array([-1])))
    attended = graph.reshaped(graph.summed(graph("Mul", weights, values), 1), -1, heads * size)
    z = graph("Add", graph("MatMul", attended, matrix("out")), cls)
    up, down = ((matrix(f"mlp.{i}.w"), matrix(f"mlp.{i}.b")) for i in (0, 1))
    inner = graph("Gelu", graph("Add", graph("MatMul", z, up[0]), up[1]))
    z = graph("Add", z, graph("Add", graph("MatMul", inner, down[0]), down[1]))
    return _column(graph, graph("MatMul", z, matrix("head")))


def _activated(graph: Nodes, activation: Activation, z: str) -> str:
    if activation.spec == "tanh":
        return graph("Tanh", z)
    if activation.native is None:
        raise InvalidInput(f"no ONNX model can be made with your activation {activation.spec}")
    kind, numbers = activation.native
    if kind == "clip":
        upper = numbers[0]
        return graph("Relu", z) if upper == np.inf else graph("Clip", z, graph.number(0), graph.number(upper))
    if kind == "gelu":
        return graph("Gelu", z)
    if kind == "power":
        return graph("Pow", z, graph.number(numbers[0]))
    if kind == "sinusoid":
        scale, degree = numbers
        shifted = graph("Sub", graph("Mul", z, graph.number(scale)), graph.number(degree))
        return graph("Cos", graph("Mul", shifted, graph.number(np.pi / 2)))
    if kind == "polynomial":
        value = graph.number(numbers[-1])
        for c in numbers[-2::-1]:
            value = graph("Add", graph("Mul", value, z), graph.number(c))
        return value
    return _zigzag(graph, z, int(numbers[0]), kind == "zigzag")


def _zigzag(graph: Nodes, z: str, k: int, finite: bool) -> str:
    s = graph("Div", graph("Sub", z, graph.number(k)), graph.number(2))
    piece = graph("Floor", s)
    if finite:
        piece = graph("Clip", piece, graph.number(-k), graph.number(-1))
    odd = graph("Sub", piece, graph("Mul", graph.number(2), graph("Floor", graph("Div", piece, graph.number(2)))))
    sign, fall = (graph("Sub", graph.number(1), graph("Mul", graph.number(2), part))
                  for part in (odd, graph("Sub", s, piece)))
    return graph("Mul", sign, fall)
