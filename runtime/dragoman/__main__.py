"""`python -m dragoman`: the same as the script `dragoman`."""

import sys

from dragoman.cli import main

sys.exit(main())
