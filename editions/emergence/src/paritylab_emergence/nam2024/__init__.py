"""The claims of nam2024."""
