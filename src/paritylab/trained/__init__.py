"""Trained networks as things: their params by name, what they compute, and where they come from."""

from paritylab.trained.networks import TrainedNetwork as TrainedNetwork
from paritylab.trained.networks import TrainedNetworks as TrainedNetworks
