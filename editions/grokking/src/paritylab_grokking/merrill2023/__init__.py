"""The claims of merrill2023."""
