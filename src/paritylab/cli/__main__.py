"""``python -m paritylab.cli``."""

import sys

from paritylab.cli import main

sys.exit(main())
