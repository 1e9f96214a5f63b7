"""The computers of a world, where it has several: what one has open stands still, or is gone, with it.

Whose code runs is known from the context in which it runs, as `contextvars` keeps it: whatever a task or a timer of a
machine begins is of the same machine. A machine that stands still loses nothing; its clocks go on, as those of a real
one do.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from tests.world.streams import End

T = TypeVar("T")

_MANY: Final = 50
"""So many connections are looked through for those that are over."""


class Machine:
    """One of them.

    Args:
        name: For the record.
        identity: The random bytes that a proxy on it has been given, in place of those of its process.

    Attributes:
        is_gone: Whether it is no more.
    """

    def __init__(self, name: str, identity: bytes = b"") -> None:
        self.name = name
        self.identity = identity
        self.is_gone = False
        self._ends: list[End] = []
        self._goes = asyncio.Event()
        self._goes.set()
        self._context = contextvars.copy_context()
        self._context.run(HERE.set, self)

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function here."""
        return self._context.copy().run(function, *args)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task here."""
        return asyncio.get_running_loop().create_task(work, context=self._context.copy())

    @property
    def is_held(self) -> bool:
        """Whether it stands still."""
        return not self._goes.is_set()

    def own(self, end: End) -> None:
        """Take note of a connection."""
        if len(self._ends) > _MANY:
            self._ends = [one for one in self._ends if not (one.hears.is_dropped and one.says.is_told)]
        self._ends.append(end)
        if self.is_held:
            end.hold(True)

    def hold(self) -> None:
        """Stand still: nothing comes in or goes out."""
        if not self.is_held and not self.is_gone:
            self._goes.clear()
            for end in self._ends:
                end.hold(True)

    def go_on(self) -> None:
        """Go on after that."""
        if self.is_held:
            self._goes.set()
            for end in self._ends:
                end.hold(False)

    async def until_it_goes(self) -> None:
        """Wait until it does not stand still."""
        await self._goes.wait()

    def die(self) -> None:
        """Be gone: what is on its way is lost, and nothing goes out any more."""
        self.go_on()
        self.is_gone = True
        for end in self._ends:
            end.cut()
        self._ends.clear()


HERE: Final[contextvars.ContextVar[Machine | None]] = contextvars.ContextVar("HERE", default=None)
"""The machine whose code runs."""
