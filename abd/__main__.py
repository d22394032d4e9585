"""`python -m abd` runs the command `abd`."""

import sys

from abd.cli import main

sys.exit(main())
