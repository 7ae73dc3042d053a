"""The claims of michaud2025."""
