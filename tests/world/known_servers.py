"""What a world remembers of its servers, in memory: what `dragoman.host.known` keeps in files."""

from __future__ import annotations

import time

from dragoman.host.known import SAID_S, Said


class KnownAnswers:
    """What a server said, by the question that it was opened with."""

    def __init__(self) -> None:
        self._said: dict[bytes, Said] = {}

    def recall(self, asked: bytes) -> Said | None:
        said = self._said.get(asked)
        return said if said is not None and 0 <= time.time() - said.since < SAID_S else None

    def keep(self, asked: bytes, said: Said | None) -> None:
        if said is None:
            self._said.pop(asked, None)
        else:
            self._said[asked] = said


class KnownServer:
    """What a server is."""

    is_up = False

    def __init__(self) -> None:
        self.answers = KnownAnswers()
        self._has_handshake: bool | None = None

    def recall(self) -> bool | None:
        return self._has_handshake

    def note(self, has_handshake: bool) -> None:
        self._has_handshake = has_handshake
