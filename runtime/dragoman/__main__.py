"""`python -m dragoman`: the same as the script `dragoman`."""

import sys

from dragoman.start import main

sys.exit(main())
