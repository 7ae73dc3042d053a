"""The claims of pearce2023."""
