"""What a user can decide about a session. Values only; read by `core.edges` and `core.switch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from dragoman.core.batches import BATCH_REQUESTS
from dragoman.core.calls import OPEN_REQUESTS
from dragoman.core.negotiation import AUTO
from dragoman.core.observing import Observer
from dragoman.core.translate import Crossing, OnLoss
from dragoman_spec.record import record

TURN_S: Final = 7.0
"""For how long a call waits for those of others, at a server of which it is not clear what it asks about."""


@record
class RestartPolicy:
    """How a server that is lost is started again.

    Attributes:
        attempts: How often in a row.
        first_s: The longest pause before the first attempt, in seconds; each further one is twice as long.
        longest_s: The longest pause of all; a server that has been open for so long has recovered.
        chance: Gives a number from 0 to 1: how much of the second half of each pause is waited for.
    """

    attempts: int
    first_s: float = 0.5
    longest_s: float = 30.0
    chance: Callable[[], float] = lambda: 1.0

    def pause_s(self, attempts: int) -> float:
        """Return the pause after so many attempts."""
        longest_s = min(self.longest_s, self.first_s * 2.0 ** min(attempts, 30))
        return longest_s / 2 * (1 + self.chance())


class ServerMemory(Protocol):
    """What is remembered of a server."""

    @property
    def is_up(self) -> bool:
        """Whether it runs before we do: what it is can be asked anew each time, for that is one round trip."""

    @property
    def answers(self) -> Any:
        """What it said, for whoever answers in its place while it starts (`host.greeting`); None where nothing is."""

    def recall(self) -> bool | None:
        """Whether it has a handshake; None where that is not known, or where it speaks both eras."""

    def note(self, has_handshake: bool) -> None:
        """Remember it."""


@record
class Settings:
    """What the user decided.

    Attributes:
        client_revision: `auto`, or the revision to speak with the client.
        server_revision: `auto`, the revision to offer the server, or `same` for a server that speaks every revision.
        retry_older: Whether to offer another revision, once, after an explicit rejection.
        expect_echo: Whether rule `echoing-server` is on: the newest revision is offered first.
        accept_legacy_initialized: Whether rule `legacy-initialized-name` is on.
        assume_logging: Whether rule `assume-logging` is on.
        restore_ids: Whether rule `restore-id-type` is on.
        on_loss: What to do about frames that cannot be carried whole.
        init_timeout_s: How long to wait for each half of the handshake.
        drain_timeout_s: How long a client that said no more is still answered.
        linger_s: How long a client may take to ask a server that is already gone.
        queue_frames: How many frames of a side may wait for readiness.
        queue_bytes: How many bytes of a side may wait for readiness.
        open_requests: How many requests of a side may be unanswered.
        batch_requests: How many requests one array may hold.
        request_timeout_s: How long a request of the client may be with the server; None for as long as that takes.
        restart: How a server that is lost is started again; None where its clients' sessions end with it.
        health_s: How long a server may say nothing before it is asked whether it is there; None for ever.
        request_ceiling_s: How long at most, whatever progress it makes; None for as long as it makes any.
        has_middleware: Whether requests and notifications are given to middleware on their way.
        known: What is remembered of the server; None where nothing is.
        watch: Told of each frame that is translated; None where nobody wants to know.
        observer: Told of each call; None where nobody wants to know.
    """

    client_revision: str = AUTO
    server_revision: str = AUTO
    retry_older: bool = True
    expect_echo: bool = True
    accept_legacy_initialized: bool = True
    assume_logging: bool = True
    restore_ids: bool = True
    on_loss: OnLoss = OnLoss.WARN
    init_timeout_s: float = 60.0
    drain_timeout_s: float = 30.0
    linger_s: float = 1.0
    queue_frames: int = 256
    queue_bytes: int = 16 * 1024 * 1024
    open_requests: int = OPEN_REQUESTS
    batch_requests: int = BATCH_REQUESTS
    request_timeout_s: float | None = None
    request_ceiling_s: float | None = None
    restart: RestartPolicy | None = None
    health_s: float | None = None
    has_middleware: bool = False
    known: ServerMemory | None = None
    watch: Callable[[Crossing], None] | None = None
    observer: Observer | None = None
