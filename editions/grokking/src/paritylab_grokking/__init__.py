"""Grokking on parities: claims of two papers and of a group's notes, for paritylab."""
