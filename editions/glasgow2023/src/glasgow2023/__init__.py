"""glasgow2023: SGD finds then tunes features, the XOR problem."""
