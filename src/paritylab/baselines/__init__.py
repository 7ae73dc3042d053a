"""What else finds a parity: linear algebra and search."""
