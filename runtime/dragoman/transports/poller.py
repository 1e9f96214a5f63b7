"""An event loop for few descriptors, where the system has epoll: that of the standard library looks everything up anew.

Lives here: what `asyncio` asks of a selector, and a loop whose readers are called by it. Must not: know who reads or
writes. Used by a proxy over pipes, whose two or three descriptors are waited for twice a call; with HTTP it is uvloop.

A turn of the loop takes as long as a tenth of a call. So while one descriptor at a time can be read, and nothing else
is to be done, whoever reads it is called while it is waited, and it is waited on.
"""

from __future__ import annotations

import contextlib
import select
import selectors
import sys
from asyncio import AbstractEventLoop, Handle, SelectorEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final, TypeVarTuple

ArgsT = TypeVarTuple("ArgsT")

_MOST: Final = 64
"""How many descriptors are told of at once; others are told of the next time."""

_CAN_BE_READ: Final = 1
_CAN_BE_WRITTEN: Final = 4
"""What epoll says, a constant in every Linux; an end or an error counts as both."""

if sys.platform == "linux":
    _READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

    class Poller(selectors.BaseSelector):
        """Waits for descriptors, which are integers; beside reading and writing, an end or an error is both.

        Attributes:
            readers: What is called where a descriptor alone can be read, in place of telling of it.
            failed: Called with the descriptor and the error where that fails.
            is_due: Whether something else is to be done meanwhile.
        """

        def __init__(self) -> None:
            self.readers: dict[int, Callable[[], object]] = {}
            self.failed: Callable[[int, Exception], object]
            self.is_due = False
            self._epoll = select.epoll()
            self._keys: dict[Any, selectors.SelectorKey] = {}
            self._reads: dict[int, list[tuple[selectors.SelectorKey, int]]] = {}  # what is told where one can be read

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            """Begin to wait for a descriptor."""
            self._epoll.register(fileobj, _bits(events))
            return self._note(fileobj, events, data)

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            """Wait for it no more, which may be closed already."""
            key = self._keys.pop(fileobj)
            del self._reads[fileobj]
            with contextlib.suppress(OSError):
                self._epoll.unregister(fileobj)
            return key

        def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            """Wait for it in another way."""
            self._epoll.modify(fileobj, _bits(events))
            return self._note(fileobj, events, data)

        def _note(self, fd: int, events: int, data: Any) -> selectors.SelectorKey:
            key = self._keys[fd] = selectors.SelectorKey(fd, fd, events, data)
            self._reads[fd] = [(key, _READ & events)]
            return key

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            """Wait so many seconds, or until something has happened; give what."""
            wait_s = -1 if timeout is None else max(0, timeout) if timeout else 0
            self.is_due = timeout is not None
            poll, readers = self._epoll.poll, self.readers
            while True:
                try:
                    found = poll(wait_s, _MOST)
                except InterruptedError:
                    return []
                if len(found) != 1:
                    break
                fd, event = found[0]
                if event != _CAN_BE_READ:
                    break
                if fd not in readers:
                    if fd in self._reads:
                        return self._reads[fd]
                    break
                try:
                    readers[fd]()
                except Exception as error:
                    self.failed(fd, error)
                if self.is_due:
                    return []
            known = [(self._keys[fd], event) for fd, event in found if fd in self._keys]
            return [(key, key.events & _meant_by(event)) for key, event in known]

        def close(self) -> None:
            """Wait for nothing more."""
            self._epoll.close()
            self._keys.clear()
            self._reads.clear()

        def get_key(self, fileobj: Any) -> selectors.SelectorKey:
            """Return how a descriptor is waited for; a KeyError where it is not."""
            return self._keys[fileobj]

        def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
            """Return all."""
            return self._keys

    class PipeLoop(SelectorEventLoop):
        """A loop that calls readers while it waits."""

        def __init__(self) -> None:
            self._poller = Poller()
            self._poller.failed = self._tell_failed
            super().__init__(self._poller)

        def add_reader(self, fd: Any, callback: Callable[[*ArgsT], Any], *args: *ArgsT) -> None:
            """Call this where a descriptor can be read, as `asyncio` would."""
            super().add_reader(fd, callback, *args)
            self._poller.readers[fd] = partial(copy_context().run, callback, *args)

        def _tell_failed(self, fd: int, error: Exception) -> None:
            self.call_exception_handler({"message": f"reading from {fd} failed", "exception": error})

        def remove_reader(self, fd: Any) -> bool:
            """Call nothing more there."""
            self._poller.readers.pop(fd, None)
            return super().remove_reader(fd)

        def call_soon(
            self, callback: Callable[[*ArgsT], object], *args: *ArgsT, context: Context | None = None
        ) -> Handle:
            """Call this in the next turn, which is due then."""
            self._poller.is_due = True
            return super().call_soon(callback, *args, context=context)

        def call_at(
            self, when: float, callback: Callable[[*ArgsT], object], *args: *ArgsT, context: Context | None = None
        ) -> TimerHandle:
            """Call this at a time, for which turns have to be taken."""
            self._poller.is_due = True
            return super().call_at(when, callback, *args, context=context)

        def stop(self) -> None:
            """Stop after this turn."""
            self._poller.is_due = True
            super().stop()

    def _bits(events: int) -> int:
        return (events & _READ and select.EPOLLIN) | (events & _WRITE and select.EPOLLOUT)

    def _meant_by(event: int) -> int:
        return (event & ~_CAN_BE_READ and _WRITE) | (event & ~_CAN_BE_WRITTEN and _READ)


def make_loop() -> AbstractEventLoop:
    """Return an event loop for pipes."""
    if sys.platform == "linux":
        return PipeLoop()
    return SelectorEventLoop()
