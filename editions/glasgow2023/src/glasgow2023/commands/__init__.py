"""The commands that this paper adds to ``paritylab``."""
