"""Questions that the papers leave open, or never asked, tried by the rules that their own claims are tried by."""
