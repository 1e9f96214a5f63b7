"""What is decided about a world before it begins: who is there, who does what when, and what goes wrong.

A plan is plain data, made from a cell and a seed (`make_plan` of `plans`), or read from a file of `kept/`. What happens
in a world follows from its plan alone. So a failing one can be made small by leaving out parts of it (`shrink`).

What a server does about a call stands in the arguments of the call, as steps: `["wait", 2.5]`, `["ask", "sampling"]`,
`["progress"]`, `["log", "info"]`, `["answer", "text"]`; `peers.server` has the list.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Final

from tests.world.streams import Manner

Act = dict[str, Any]

ENDS_ALL: Final = ("die", "closes", "stops reading")
"""Steps of a call after which its server answers nobody any more."""


@dataclass
class ClientPlan:
    """One client.

    Attributes:
        name: `c0`, `c1`, …
        principal: Who it is, where clients have names.
        revision: What it speaks.
        has: What it can be asked: `sampling`, `elicitation`, `roots`.
        manner: How it answers what it is asked: `good`, `slow`, `mute`, `twice`, `odd` (ids that are words), `silent`
            (connects, and never says a word), `again` (uses ids of requests again that it has cancelled), `stubborn`
            (asks on when its `initialize` was refused), `hasty` (asks before it is answered), `unsure` (asks first what
            the server is, and opens a session when it has waited for long enough).
        acts: What it does, each with `at`, in seconds after it began, and `do`.
        begins_s: When it comes.
        way: How it reaches the HTTP front: `websocket`, `sse`, or else by Streamable HTTP.
        tasks: Whether it knows tasks, and calls that say `follow` are to be some.
        shows: What it shows a proxy that is guarded: `token`, which it renews in time, `old token`, which it does not,
            `secret`, `nothing`, or a token that does not count: `forged`, `foreign` (for somebody else), `elsewhere`
            (of another issuer).
        path: The server at whose path it comes, where each has one; empty: the path of all.
        visits: What who is behind it does with a link: `goes`, `hands on` (to somebody else), `declines`, `ignores`.
            Empty: it shows none.
    """

    name: str
    principal: str
    revision: str
    has: list[str] = field(default_factory=list)
    manner: str = "good"
    acts: list[Act] = field(default_factory=list)
    begins_s: float = 0.0
    way: str = ""
    tasks: bool = False
    shows: str = "secret"
    path: str = ""
    visits: str = ""


@dataclass
class ServerPlan:
    """One server, each of its runs.

    Attributes:
        name: `s0`, `s1`, …
        revisions: What it speaks.
        manner: `good`, `slow`, `rude` (asks for what its client cannot do), `words` (ids that are words),
            `goes-on` (does not heed cancellations), `garbles` (what it answers first is no answer), `declines`
            (subscriptions, and levels of logs), `refuses` (to open a session), `eager` (asks before there is a call).
        start_s: How long it takes to answer the first question.
        link: How the proxy reaches it: `lines`, as over pipes, `http`, `websocket` or `sse`.
        has: Its capabilities, beside tools.
        tasks: Whether its tools run as tasks: `optional`, `required`, or not at all.
        tls: Whether it is reached by TLS.
        arrays: Whether what it says in one moment goes out as one array, where its revision has those.
        going: How it goes when its input has ended, where it is a child process; `programs` has the list.
    """

    name: str
    revisions: list[str]
    manner: str = "good"
    start_s: float = 0.0
    link: str = "lines"
    has: list[str] = field(default_factory=list)
    tasks: str = ""
    arrays: bool = False
    tls: bool = False
    going: str = "at once"

    @property
    def is_slow(self) -> bool:
        """Whether it may take longer than a router waits for it."""
        return self.manner == "slow" or self.start_s > 1


@dataclass
class Plan:
    """A world.

    Attributes:
        cell: Which kind of world it is.
        seed: What is left to chance while it runs comes from here.
        scope: Who shares a server: `client`, `principal`, `shared`.
        router: Whether there is a router before the servers; without one there is one server.
        hops: How many proxies stand in a row.
        options: For `ProxyConfig`, as numbers and texts.
        inner: Of those, what is otherwise for the proxies behind another one.
        pool: For servers that are shared, as numbers and texts: `PoolConfig` and `SharingSettings` have them.
        network: How connections behave.
        front: How clients reach the proxy: `lines`, as over pipes, or `http`.
        front_options: For `FrontConfig`, as numbers and texts.
        faults: What goes wrong, each with `at`, `do` and `whom`.
        clients: In the order in which they come.
        servers: One, or those of the router.
        instances: How many proxies stand side by side, behind a balancer.
        store: Where those find each other: `redis`, `quick` (the same, without the bytes) or `folder`.
        events: Whether instances keep in the store what clients may resume.
        guard: How tokens are looked at: whether the issuer is asked about each (`asks`), how long they live
            (`lives_s`), and whether each server has a path of its own (`paths`). Empty: there is no guard.
        signin: How servers are signed in at: how long tokens live (`lives_s`), whether they are refreshed (`refresh`,
            `rotates`, `refreshes`), wanted for more (`steps`); whether clients have a secret; what the `person` is
            like; who is `hostile`, and how; whether each connection is of another process (`apart`); whether people
            come by links (`far`). Empty: servers want no tokens.
        children: Whether servers that are reached by lines are child processes, and clients that speak lines have
            started the proxy: `room` is how many bytes a pipe holds. Empty: there are no processes.
        access: Who may what: `rules`, as a configuration file has them, and `per_minute`, with `burst`, for each.
    """

    cell: str
    seed: int
    scope: str = "client"
    router: bool = False
    hops: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    inner: dict[str, Any] = field(default_factory=dict)
    pool: dict[str, Any] = field(default_factory=dict)
    network: Manner = field(default_factory=Manner)
    front: str = "lines"
    front_options: dict[str, Any] = field(default_factory=dict)
    faults: list[Act] = field(default_factory=list)
    clients: list[ClientPlan] = field(default_factory=list)
    servers: list[ServerPlan] = field(default_factory=list)
    instances: int = 1
    store: str = ""
    access: Act = field(default_factory=dict)
    guard: Act = field(default_factory=dict)
    signin: Act = field(default_factory=dict)
    events: bool = False
    children: Act = field(default_factory=dict)

    @property
    def uses_http(self) -> bool:
        """Whether some of it goes over HTTP."""
        return self.front == "http" or any(server.link != "lines" for server in self.servers)

    @property
    def is_let_in(self) -> bool:
        """Whether its servers want no tokens, or get them as soon as somebody here has signed in."""
        is_honest = not self.signin.get("hostile") and self.signin.get("person", "yes") in ("yes", "slow")
        return is_honest and not self.signin.get("far")

    @property
    def is_calm(self) -> bool:
        """Whether nothing goes wrong: no faults, nobody leaves early, everybody behaves."""
        acts = [act for client in self.clients for act in client.acts]
        is_far = self.router or self.hops > 1
        return (
            not self.faults
            and not self.access
            and not self.guard
            and self.is_let_in
            and not {act["do"] for act in acts} & {"leave", "cut", "cancel", "junk", "stall", "odd"}
            and not any(step[0] in ENDS_ALL for act in acts for step in act.get("steps", []))
            and all(client.manner in ("good", "slow") for client in self.clients)
            and not any(one.manner in ("rude", "garbles", "refuses") or one.arrays for one in self.servers)
            and not any(server.start_s > 50 for server in self.servers)
            and not (is_far and (self.network.late_s > 1 or any(server.is_slow for server in self.servers)))
        )

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Plan:
        found = json.loads(text)
        return Plan(
            **{
                **found,
                "network": Manner(**found["network"]),
                "clients": [ClientPlan(**client) for client in found["clients"]],
                "servers": [ServerPlan(**server) for server in found["servers"]],
            }
        )
