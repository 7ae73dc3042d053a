"""Emergence, scaling laws and skills on multitask parities: claims of four papers, for paritylab."""
