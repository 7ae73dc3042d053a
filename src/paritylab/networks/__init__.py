"""Networks: what learns. Each is a pair of pure functions, ``init(key, n, init)`` and ``apply(params, x)``."""

from paritylab.networks.activations import Activation as Activation
from paritylab.networks.activations import activation as activation
from paritylab.networks.custom import Network as Network
from paritylab.networks.mlp import MLP as MLP
from paritylab.networks.mlp import Neuron as Neuron
from paritylab.networks.polynet import DisjointPolyNet as DisjointPolyNet
from paritylab.networks.polynet import PolyNet as PolyNet
from paritylab.networks.transformer import Transformer as Transformer
