"""me2025: a skeleton paper of two claims."""
