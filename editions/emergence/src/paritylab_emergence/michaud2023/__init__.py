"""The claims of michaud2023."""
