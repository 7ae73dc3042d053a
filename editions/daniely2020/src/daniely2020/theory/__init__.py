"""Closed forms, bounds and idealised dynamics, one module for each subject."""
