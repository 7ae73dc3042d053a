"""The template's claims and evidence are what those of any paper must be."""

from every_claim import *  # noqa: F403
