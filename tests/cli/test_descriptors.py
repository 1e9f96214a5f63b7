"""Having enough descriptors for all that may connect."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from dragoman.cli.descriptors import OWN, PER_SESSION, raise_limit

WANTED = OWN + 100 + PER_SESSION * 10


@pytest.mark.parametrize(
    ("before", "after", "minded"),
    [
        ((64, 10_000), (WANTED, 10_000), None),
        ((64, resource.RLIM_INFINITY), (WANTED, resource.RLIM_INFINITY), None),
        ((WANTED + 1, 10_000), (WANTED + 1, 10_000), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
        ((64, 200), (200, 200), "may have 200 files and connections open, and may need 436: raise it with ulimit -n"),
    ],
)
def test_as_many_are_asked_for_as_may_be_needed(
    before: tuple[int, int], after: tuple[int, int], minded: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [before]
    monkeypatch.setattr(resource, "getrlimit", lambda _: found[0])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: found.__setitem__(0, limits))
    said = raise_limit(100, 10)
    assert found == [after]
    assert (said is None) if minded is None else (said is not None and minded in said)


def test_a_system_that_gives_no_more_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 10_000))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    said = raise_limit(100, 10)
    assert said is not None
    assert "may have 64 files" in said


def test_giving_memory_back_with_no_descriptor_left_is_no_defect() -> None:
    """The first time it has to read a module, which may be when there are too many connections."""
    code = (
        "import resource; from dragoman.cli.memory import give_back;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); give_back()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
