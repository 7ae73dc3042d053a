"""Closed forms, bounds and idealised dynamics of the papers, one module for each subject."""
