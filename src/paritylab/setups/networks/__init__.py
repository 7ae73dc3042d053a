"""Networks: what learns. Each is a pair of pure functions, ``init(key, n, init)`` and ``apply(params, x)``."""

from paritylab.setups.networks.activations import Activation as Activation
from paritylab.setups.networks.activations import activation as activation
from paritylab.setups.networks.custom import Network as Network
from paritylab.setups.networks.custom import takes_key as takes_key
from paritylab.setups.networks.graph import Graph as Graph
from paritylab.setups.networks.mlp import MLP as MLP
from paritylab.setups.networks.mlp import Neuron as Neuron
from paritylab.setups.networks.polynet import DisjointPolyNet as DisjointPolyNet
from paritylab.setups.networks.polynet import PolyNet as PolyNet
from paritylab.setups.networks.transformer import Transformer as Transformer


def is_own(network: object) -> bool:
    """Whether it is made of the user's functions, or is a class or an object of theirs."""
    return type(network) not in (MLP, Neuron, PolyNet, DisjointPolyNet, Transformer, Graph)
