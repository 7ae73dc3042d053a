"""``python -m paritylab``."""

import sys

from paritylab.cli import main

sys.exit(main())
