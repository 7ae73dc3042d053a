"""The claims of sutro."""
