"""What some tests are about that not every system has."""

from __future__ import annotations

import pytest

from dragoman.system import needs_threads

OF_LOOP = pytest.mark.skipif(needs_threads(), reason="it is about pipes in the event loop, and threads do it")
