"""The commands of all editions: refused where memory is short, helped by a crew, and answered whatever is asked."""

from __future__ import annotations

import pytest
from test_crews import hands, test_whatever_takes_long_goes_to_the_crew_and_comes_back_the_same
