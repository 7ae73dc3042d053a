"""The claims of liu2025."""
