"""Quantities computed from weights or in closed form, one module for each."""
