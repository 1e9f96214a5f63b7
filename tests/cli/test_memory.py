"""Giving memory back."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Iterator

import pytest

from dragoman.cli.memory import COLLECT_AFTER, give_back, set_apart


class Node:
    """Holds on to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def collector_as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    # What is set apart stays so: the tests themselves are, and to look for cycles among them takes a second each time.
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("platform", [sys.platform, "elsewhere"])
def test_what_is_in_circles_is_gone(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    found = weakref.ref(Node())
    give_back()
    assert found() is None


def test_what_is_there_at_the_start_is_not_looked_at_again() -> None:
    node = Node()
    set_apart()
    assert gc.get_freeze_count() > 1000
    assert not [one for one in gc.get_objects() if one is node]


def test_what_the_start_has_left_in_circles_is_freed() -> None:
    found = weakref.ref(Node())
    set_apart()
    assert found() is None


def test_cycles_are_looked_for_less_often_than_by_default() -> None:
    set_apart()
    assert gc.get_threshold() == COLLECT_AFTER


@pytest.mark.parametrize("missing", [(), ("_md5", "_sha1", "_sha2", "_sha256", "_sha512")])
def test_a_process_without_connections_loads_no_openssl_unless_it_needs_it_for_hashes(missing: tuple[str, ...]) -> None:
    """Some systems build Python without hashes of its own."""
    code = f"""
        import sys
        sys.modules.update(dict.fromkeys({missing!r}))
        from dragoman.cli.memory import load_without_tls
        load_without_tls()
        assert not {{"ssl", "_ssl", "_hashlib"}} & set(sys.modules)
        import hashlib
        print(hashlib.sha256(b"").hexdigest()[:8], "_hashlib" in sys.modules)
        import asyncio, ssl
        ssl.create_default_context()
        asyncio.run(asyncio.sleep(0))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.split() == ["e3b0c442", str(bool(missing))]
