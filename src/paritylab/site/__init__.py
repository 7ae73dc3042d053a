"""The site: every claim, published beside measured, as static pages that open from disk."""
