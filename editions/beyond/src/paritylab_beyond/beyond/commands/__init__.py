"""The commands that these studies add to ``paritylab``."""
