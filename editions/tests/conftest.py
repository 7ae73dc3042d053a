"""Fixtures that are shared with the tests of the laboratory."""

from browsing import browser, launch, page, root  # noqa: F401
from faults.furnished import furnished  # noqa: F401
from sent_to_crews import hands  # noqa: F401
from short_of_memory import little  # noqa: F401
