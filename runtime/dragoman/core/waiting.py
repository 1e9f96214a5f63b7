"""The queue for frames that come before their time.

Lives here: keeping them in order and within bounds. Must not: decide what is early. Called by `core.edges.early`,
once for each side.
"""

from __future__ import annotations

from dragoman.core.envelope import Frame, classify


class WaitingRoom:
    """Frames in the order in which they came, bounded in number and in bytes.

    Args:
        limit_frames: How many may wait.
        limit_bytes: How many bytes they may have together.
    """

    __slots__ = ("_bytes", "_frames", "_limit_bytes", "_limit_frames")

    def __init__(self, limit_frames: int, limit_bytes: int) -> None:
        self._limit_frames = limit_frames
        self._limit_bytes = limit_bytes
        self._frames: list[Frame] = []  # an empty deque takes 0.7 KB, and there are two a session
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: Frame) -> bool:
        """Let a frame wait; False when the room is full."""
        if len(self._frames) >= self._limit_frames or self._bytes + len(frame.raw) > self._limit_bytes:
            return False
        self._frames.append(frame)
        self._bytes += len(frame.raw)
        return True

    def remove(self, key: bytes) -> bool:
        """Forget the request with this id; False when there is none."""
        for frame in self._frames:
            if frame.kind == "request" and frame.key == key:
                self._frames.remove(frame)
                self._bytes -= len(frame.raw)
                return True
        return False

    def take_all(self) -> list[Frame]:
        """Take every frame out, in order."""
        frames, self._frames = self._frames, []
        self._bytes = 0
        return frames


def request_keys(frame: Frame) -> list[bytes]:
    """Return the ids of the requests in a frame: its own, or those inside an array."""
    if frame.kind != "batch":
        return [frame.key] if frame.kind == "request" and frame.key is not None else []
    members = [classify(b"", member) for member in frame.body]
    return [member.key for member in members if isinstance(member, Frame) and member.kind == "request" and member.key]
