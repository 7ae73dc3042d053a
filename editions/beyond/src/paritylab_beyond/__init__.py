"""Questions that the papers leave open, or never asked."""
