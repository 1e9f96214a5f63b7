"""What a switch needs from outside to make its edges: values and functions, made once for all sessions of a proxy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dragoman.core.commands import Side
from dragoman.core.consent import Method
from dragoman.core.settings import Settings
from dragoman.core.translate import Adaptor, Counters, Translator
from dragoman_spec.record import record

if TYPE_CHECKING:
    from dragoman.core.rules.state import Keeper


@record
class Bridging:
    """What only the bridge between the eras needs.

    Attributes:
        now: Gives the time, in seconds since 1970, on a clock that all instances share.
        steady_s: Reads a clock that never goes back, in seconds: for what is kept in memory.
        nonce: Gives random bytes, as many as a state needs, never the same twice.
        keeper: Gives what writes and reads the states that clients carry; made when it is first needed.
        server: Which server it is, by a name of the user's; states are bound to it.
        principal: Who the client is, as far as that is known; empty otherwise. States are bound to it.
        shares_channel: Whether all that a client hears comes on one channel; over HTTP each request has its own.
        shares_server: Whether one session of the server serves several principals; each request says whose it is then.
        questions: How a question in the middle of a call is put to a client without a session: one of
            `rules.strategy.SETTINGS`.
        repeatable: The tools that may be run twice, beside those of which their server says so.
        most_parked: How many calls may wait for their clients to come back.
        task_s: For how many seconds a task that is a call in truth is kept, from its beginning.
        roots_ttl_s: For how many seconds the roots that a client has told may be used again; 0 is not at all.
    """

    now: Callable[[], float]
    steady_s: Callable[[], float]
    nonce: Callable[[], bytes]
    keeper: Callable[[], Keeper]
    server: str = ""
    principal: str = ""
    shares_channel: bool = True
    shares_server: bool = False
    questions: str = "auto"
    repeatable: frozenset[str] = frozenset()
    most_parked: int = 256
    task_s: float = 3600.0
    roots_ttl_s: float = 0.0


@record
class Wiring:
    """What all edges of a switch have in common.

    Attributes:
        settings: What the user decided.
        translate: Gives the composed steps from one revision to another.
        methods_of: Gives the methods of a revision.
        now_s: Reads a clock that never goes back, in seconds.
        bridging: What the bridge needs; None where there is none.
    """

    settings: Settings
    translate: Callable[[str, str], Translator]
    methods_of: Callable[[str], Mapping[str, Method]]
    now_s: Callable[[], float] = lambda: 0.0
    bridging: Bridging | None = None

    def make_adaptor(self, side: Side, source: str, target: str, counters: Counters) -> Adaptor:
        """Return what carries the frames of this peer from one revision to another."""
        way, settings = self.translate(source, target), self.settings
        return Adaptor(None if way.identity else way, settings.on_loss, counters, side, settings.watch)
