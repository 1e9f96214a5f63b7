"""Plans from seeds: which worlds there are, and what chance decides about them.

A cell is a kind of world: who stands between its clients and its servers. `make_plan` decides everything else.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS
from tests.world.access_plans import bend
from tests.world.arrays import add_arrays
from tests.world.bents import AMONG_SEVERAL, EVERYWHERE
from tests.world.child_plans import add_children
from tests.world.guard_plans import add_guard
from tests.world.peers.words import chance_of
from tests.world.plan import Act, ClientPlan, Plan, ServerPlan
from tests.world.replica_plans import BENTS_OF_REPLICAS, keep_events
from tests.world.signin_plans import add_sign_in
from tests.world.streams import Manner
from tests.world.task_plans import add_tasks

_KINDS: Final = ("sampling", "elicitation", "roots")
_ANSWERS: Final = ("text", "text", "text", "error", "both")
_PRINCIPALS: Final = ("ada", "bob", "cyd")


def _direct(plan: Plan, chance: random.Random) -> None:
    """A client has its server for itself."""


def _shared(plan: Plan, chance: random.Random) -> None:
    """All clients, or those of one principal, share a server."""
    plan.scope = chance.choice(("shared", "shared", "principal"))


def _router(plan: Plan, chance: random.Random) -> None:
    """There are several servers behind a router, and everybody may share it."""
    plan.router = True
    plan.scope = chance.choice(("client", "shared", "shared", "principal"))


def _row(plan: Plan, chance: random.Random) -> None:
    """Two proxies stand one behind the other."""
    plan.hops = 2
    plan.scope = chance.choice(("client", "shared", "principal"))


def _http(plan: Plan, chance: random.Random) -> None:
    """Clients, servers or both speak HTTP."""
    plan.scope = chance.choice(("client", "client", "shared", "principal"))
    plan.front = chance.choice(("http", "http", "lines"))
    plan.router = chance.random() < 0.15
    if plan.front == "http":
        plan.front_options = _make_front_options(chance)


def _replicas(plan: Plan, chance: random.Random) -> None:
    """Several instances stand behind a balancer, and find each other by a store."""
    plan.instances = chance.choice((2, 2, 3))
    plan.store = chance.choice(("quick", "quick", "redis", "folder", "folder"))
    plan.scope = chance.choice(("client", "client", "shared", "principal"))
    plan.front = "http"
    plan.router = chance.random() < 0.15
    plan.front_options = _make_front_options(chance)


def _ways(plan: Plan, chance: random.Random) -> None:
    """Clients come over WebSocket, over HTTP+SSE, and over Streamable HTTP."""
    plan.scope = chance.choice(("client", "client", "shared", "principal"))
    plan.front = "http"
    plan.router = chance.random() < 0.15
    plan.front_options = _make_front_options(chance)


def _access(plan: Plan, chance: random.Random) -> None:
    """Not everybody may everything, and there may be room for little."""
    plan.scope = chance.choice(("client", "shared", "shared", "principal"))
    plan.front = "http"
    plan.router = chance.random() < 0.5
    plan.front_options = _make_front_options(chance)


def _tasks(plan: Plan, chance: random.Random) -> None:
    """Calls become tasks, and go on when they have been answered."""
    plan.scope = chance.choice(("client", "client", "shared", "principal"))
    plan.front = chance.choice(("http", "http", "lines"))
    plan.router = chance.random() < 0.25
    if plan.front == "http":
        plan.front_options = _make_front_options(chance)


def _guard(plan: Plan, chance: random.Random) -> None:
    """Clients show tokens of an authorization server, and servers have paths of their own."""
    plan.scope = chance.choice(("client", "client", "shared", "principal"))
    plan.front = "http"
    plan.router = chance.random() < 0.5
    plan.front_options = _make_front_options(chance)


def _signin(plan: Plan, chance: random.Random) -> None:
    """Servers want tokens, and somebody signs in."""
    plan.scope = chance.choice(("client", "client", "shared", "principal"))
    plan.front = chance.choice(("http", "lines"))
    plan.router = chance.random() < 0.3
    if plan.front == "http":
        plan.front_options = _make_front_options(chance)


def _children(plan: Plan, chance: random.Random) -> None:
    """Servers are child processes, and clients that speak lines have started the proxy."""
    plan.scope = chance.choice(("client", "client", "shared", "principal"))
    plan.front = chance.choice(("http", "http", "lines"))
    plan.router = chance.random() < 0.3
    if plan.front == "http":
        plan.front_options = _make_front_options(chance)


CELLS: Final[dict[str, Callable[[Plan, random.Random], None]]] = {
    "direct": _direct,
    "shared": _shared,
    "router": _router,
    "row": _row,
    "http": _http,
    "replicas": _replicas,
    "ways": _ways,
    "access": _access,
    "tasks": _tasks,
    "guard": _guard,
    "signin": _signin,
    "children": _children,
}
"""The kinds of worlds, by name."""


def make_plan(cell: str, seed: int) -> Plan:
    """Decide what a world is made of."""
    chance = random.Random(f"plan {cell} {seed}")
    plan = Plan(cell, seed)
    CELLS[cell](plan, chance)
    plan.network = _make_network(chance)
    plan.options = _make_options(chance)
    plan.servers = [_make_server(plan, chance, n) for n in range(chance.randint(1, 3) if plan.router else 1)]
    plan.clients = [_make_client(plan, chance, n) for n in range(chance.choice((1, 2, 2, 3, 4)))]
    if chance.random() < 0.5:
        plan.faults = [_make_fault(plan, chance) for _ in range(chance.randint(1, 3))]
    bents = (*_BENTS, *EVERYWHERE, *(AMONG_SEVERAL if cell != "direct" else ()))
    if cell == "tasks":
        add_tasks(plan, chance)
    elif cell == "guard":
        add_guard(plan, chance)
    elif cell == "signin":
        add_sign_in(plan, chance)
    elif cell == "children":
        bents[seed * _step_of(len(bents)) % len(bents)](plan, chance)
        add_children(plan, chance)
    else:
        bents[seed * _step_of(len(bents)) % len(bents)](plan, chance)
    if cell == "ways":
        for server in plan.servers:
            link = chance.choice((server.link, "websocket", "sse"))
            if any(revision in HANDSHAKE_REVISIONS for revision in server.revisions):  # the others have no such way
                server.link = link
        for client in plan.clients:
            client.way = chance.choice(("websocket", "websocket", "sse", "sse", ""))
            if client.way and client.manner == "again":
                client.manner = "good"  # what is posted may come in another order
            if client.way and client.revision not in HANDSHAKE_REVISIONS:
                client.revision = chance.choice(HANDSHAKE_REVISIONS)
        for server in plan.servers:
            server.tls = server.link != "lines" and chance_of(seed, "tls", server.name).random() < 0.4
    if plan.front == "http" and plan.instances == 1 and chance.random() < 0.1:
        whom = chance.choice(plan.clients).principal
        at_s = chance.choice((1.0, 4.0, 15.0))
        plan.faults.append({"at": at_s, "do": chance.choice(("steal", "revoke")), "principal": whom})
    if cell == "access":
        bend(plan, chance)
    if plan.instances > 1:
        chance.choice(BENTS_OF_REPLICAS)(plan, chance)
        keep_events(plan, random.Random(f"events {seed}"))
    add_arrays(plan, random.Random(f"arrays {cell} {seed}"))
    return plan


def _step_of(bents: int) -> int:
    """Say how far apart the bents of two seeds are that follow each other: each has its turn, but not those alike."""
    return next(step for step in (11, 13, 17) if bents % step)


# What a world is bent on: chance alone comes rarely to where several unlikely things happen together.


def _nothing(plan: Plan, chance: random.Random) -> None:
    """Leave it as it is."""


def _leaving(plan: Plan, chance: random.Random) -> None:
    """Clients leave while their calls are at servers that go on, and ask."""
    for server in plan.servers:
        server.manner = chance.choice(("goes-on", "goes-on", server.manner))
    for client in plan.clients:
        client.has = list(_KINDS)
        for act in client.acts:
            if act["do"] == "call":
                act["steps"] = [
                    ["wait", chance.choice((0.5, 3.0, 20.0))],
                    ["ask", *chance.sample(_KINDS, chance.choice((1, 1, 2)))],
                    ["answer", chance.choice(_ANSWERS)],
                ]
        if chance.random() < 0.6:
            at_s = client.acts[-1]["at"] + chance.choice((0.0, 0.2, 2.0))
            client.acts.append({"at": at_s, "do": chance.choice(("leave", "cut")), "n": len(client.acts)})
            if chance.random() < 0.3:
                plan.faults.append({"at": at_s + 1.5, "do": "die", "whom": plan.servers[0].name, "for_s": 0})


def _dying(plan: Plan, chance: random.Random) -> None:
    """Servers die while clients think about what they were asked, and are started again."""
    plan.options["restarts"] = chance.randint(1, 3)
    plan.faults += [_make_death(plan, chance) for _ in range(chance.randint(1, 3))]
    for client in plan.clients:
        client.has, client.manner = list(_KINDS), chance.choice(("slow", "slow", client.manner))
        for act in client.acts:
            if act["do"] == "call" and chance.random() < 0.7:
                act["steps"] = [["ask", chance.choice(_KINDS[:2])], ["answer", "text"]]


def _draining(plan: Plan, chance: random.Random) -> None:
    """Sessions are drained while calls are under way, and then the client leaves, the server dies, or all stops."""
    for client in plan.clients:
        client.begins_s = 0.0
        first = {"at": 0.0, "do": "call", "n": 0, "server": plan.servers[0].name, "progress": False}
        client.acts = [{**first, "steps": [["wait", 30.0], ["answer", chance.choice(_ANSWERS)]]}, *client.acts[1:3]]
        if chance.random() < 0.4:
            at_s = max(20.0, client.acts[-1]["at"])
            client.acts.append({"at": at_s, "do": chance.choice(("leave", "cut")), "n": len(client.acts)})
    plan.faults += [{"at": 10.0 + n, "do": "drain", "client": n} for n in range(len(plan.clients))]
    kind = chance.choice(("stop", "die", "terminate", ""))
    if kind in ("stop", "terminate"):
        plan.faults.append({"at": 17.0, "do": kind, "client": 0, "principal": ""})
    elif kind == "die":
        plan.options.pop("restarts", None)
        plan.faults.append({"at": 17.0, "do": "die", "whom": plan.servers[0].name, "for_s": 0.0})


def _recovering(plan: Plan, chance: random.Random) -> None:
    """A server is lost again while it gets back the session that it has lost, and its client may leave meanwhile."""
    plan.options["restarts"] = chance.randint(1, 3)
    for server in plan.servers:
        server.start_s = chance.choice((0.5, 2.5, 6.0))
        server.manner = chance.choice(("slow", server.manner))
    at_s = chance.choice((15.0, 20.0))
    whom, what = plan.servers[0].name, chance.choice(("die", "forget"))
    for after_s in (0.0, 1.0, 2.0, 4.0, 7.0)[: chance.randint(2, 5)]:
        plan.faults.append({"at": at_s + after_s, "do": what, "whom": whom, "for_s": 0.0})
    for client in plan.clients:
        later = [(chance.choice(("read", "read", "subscribe")), after_s) for after_s in (0.0, 1.0, 2.0)]
        for does, after_s in (("subscribe", -8.0), ("subscribe", -7.0), *later):
            client.acts.append({"at": at_s + after_s, "do": does, "n": len(client.acts), "server": whom})
        if chance.random() < 0.3:
            client.acts.append({"at": at_s + 3, "do": chance.choice(("leave", "cut")), "n": len(client.acts)})
    for client in plan.clients:
        client.acts.sort(key=lambda act: float(act["at"]))


def _crowding(plan: Plan, chance: random.Random) -> None:
    """Clients have as many calls under way as they may, and more, and want the same resources."""
    plan.options["open_requests"] = chance.choice((2, 3))
    plan.faults.clear()
    for client in plan.clients:
        client.has, client.manner, client.acts = list(_KINDS), "good", []
        for n in range(chance.randint(4, 7)):
            steps = [["wait", chance.choice((5.0, 10.0))], ["answer", "text"]]
            act = {"do": "call", "steps": steps, "progress": chance.random() < 0.5}
            client.acts.append({"at": n * 0.1, "n": n, "server": chance.choice(plan.servers).name, **act})


def _guessing(plan: Plan, chance: random.Random) -> None:
    """While one client thinks about a question, others answer what they were not asked, or take back and give up."""
    first = plan.clients[0]
    first.has, first.manner, first.begins_s = list(_KINDS), "slow", 0.0
    for n, act in enumerate(act for act in first.acts if act["do"] == "call"):
        act["steps"] = [["ask-on", "sampling"], ["wait", 20.0], ["answer", "text"]]
        if n % 2:
            act["steps"].insert(2, ["withdraw"])
    for other in plan.clients[1:]:
        other.begins_s = 0.0
        for at_s in (1.0, 3.0, 5.0, 8.0, 13.0):
            which = chance.choice((6, 13, 20, 27))
            other.acts.append({"at": at_s, "do": "junk", "which": which, "n": len(other.acts)})
        other.acts.sort(key=lambda act: float(act["at"]))


def _subscribing(plan: Plan, chance: random.Random) -> None:
    """Clients want the same resources and levels, and hear of changes."""
    plan.faults.clear()
    plan.options.clear()
    for client in plan.clients:
        client.manner = "good"
        client.acts = [act for act in client.acts if act["do"] == "call"][:3]
        whom = plan.servers[0].name
        wants = {"do": "subscribe", "of": 0, "common": True, "server": whom}
        client.acts.insert(0, {"at": 0.0, **wants, "n": 100})
        client.acts.insert(1, {"at": 0.0, "do": "level", "level": chance.choice(("debug", "error")), "n": 101})
        steps = [["wait", 5.0], ["updated"], ["log", "info"], ["wait", 5.0], ["answer", "text"]]
        client.acts.append({"at": 8.0, "do": "call", "n": 102, "server": whom, "progress": False, "steps": steps})
        if chance.random() < 0.5:
            client.acts.append({"at": 20.0, **wants, "do": "unsubscribe", "n": 103})
            client.acts.append({**client.acts[-2], "at": 21.0, "n": 104})


_BENTS: Final = (
    *(_nothing, _nothing, _nothing, _nothing, _nothing, _leaving, _leaving, _dying, _dying),
    *(_draining, _recovering, _crowding, _guessing, _subscribing),
)


def _make_network(chance: random.Random) -> Manner:
    if chance.random() < 0.3:
        return Manner()
    return Manner(chance.choice((0, 0.1, 0.5)), chance.choice((0, 0.3)), chance.random(), chance.choice((0.01, 1, 10)))


def _make_options(chance: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if chance.random() < 0.5:
        options["restarts"] = chance.randint(1, 3)
    if chance.random() < 0.2:
        options["request_timeout_s"] = chance.choice((5.0, 30.0))
    if chance.random() < 0.15:
        options["health_s"] = 20.0
    if chance.random() < 0.2:
        options["open_requests"] = chance.choice((1, 2, 4))
    if chance.random() < 0.3:
        options["greets"] = True
    if chance.random() < 0.2:
        options["questions"] = chance.choice(("task", "park", "replay", "refuse"))
    return options


def _make_front_options(chance: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {"answers": chance.choice(("auto", "auto", "json", "sse"))}
    if chance.random() < 0.2:
        options["streams"] = chance.choice((2, 4))
    if chance.random() < 0.2:
        options["poll_s"] = 5.0
    if chance.random() < 0.1:
        options["sessions"] = 2
    return options


def _make_server(plan: Plan, chance: random.Random, number: int) -> ServerPlan:
    revisions: list[str] = [chance.choice(REVISIONS)]
    if chance.random() < 0.3:
        revisions = sorted({*revisions, *chance.sample(REVISIONS, 2)})
    manner = chance.choice(("good", "good", "good", "slow", "words", "rude", "goes-on"))
    if chance.random() < 0.03:
        manner = "garbles"
    server = ServerPlan(f"s{number}", revisions, manner, chance.choice((0.0, 0.0, 0.0, 0.5, 2.5, 6.0)))
    if chance.random() < 0.02:
        server.start_s = 500.0  # longer than anybody waits
    if plan.cell in ("http", "replicas", "ways", "access", "tasks", "guard") and (
        plan.front == "lines" or chance.random() < 0.6
    ):
        server.link = "http"
    return server


def _make_client(plan: Plan, chance: random.Random, number: int) -> ClientPlan:
    revisions = REVISIONS if plan.scope == "client" or plan.front == "http" else HANDSHAKE_REVISIONS
    has = [kind for kind in _KINDS if chance.random() < 0.6]
    manner = chance.choice(("good", "good", "good", "good", "slow", "slow", "mute", "twice", "odd", "odd"))
    if chance.random() < 0.02:
        manner = "silent"
    principal = chance.choice(_PRINCIPALS)
    begins_s = chance.choice((0.0, 0.0, 0.0, 1.0, 10.0, 30.0))
    client = ClientPlan(f"c{number}", principal, chance.choice(revisions), has, manner, begins_s=begins_s)
    at_s = 0.0
    for n in range(chance.randint(1, 8)):
        at_s += chance.choice((0.0, 0.0, 0.1, 1.0, 5.0))
        client.acts.append(_make_act(plan, chance, n, round(at_s, 3)))
    return client


def _make_act(plan: Plan, chance: random.Random, number: int, at_s: float) -> Act:
    act: Act = {"at": at_s, "do": "call", "n": number, "server": chance.choice(plan.servers).name}
    kind = chance.random()
    if kind < 0.6 or number == 0:
        act["steps"] = _make_steps(chance)
        act["progress"] = chance.random() < 0.5
        if chance.random() < 0.3:
            act["level"] = "info"
    elif kind < 0.7:
        act["do"], act["what"] = "list", chance.choice(("tools", "prompts", "resources", "resources/templates"))
    elif kind < 0.82:
        act["do"] = chance.choice(("read", "prompt", "complete", "ping"))
    elif kind < 0.85:
        act["do"] = "subscribe"
    elif kind < 0.86:
        act["do"], act["of"] = "unsubscribe", chance.randrange(number)
    elif kind < 0.89:
        act["do"], act["level"] = "level", chance.choice(("debug", "error"))
    elif kind < 0.93:
        act["do"], act["of"] = "cancel", chance.randrange(number)
    elif kind < 0.96:
        act["do"], act["which"] = "junk", chance.choice((0, 1, 2, 3, 4, 5, 13, 13, 20))
    elif kind < 0.97:
        act["do"], act["for"] = "stall", chance.choice((1.0, 50.0))
    else:
        act["do"] = chance.choice(("leave", "cut"))
    return act


def _make_steps(chance: random.Random) -> list[list[Any]]:
    steps: list[list[Any]] = []
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
        steps.append(_make_step(chance))
    how = ("text", "text", "text", "structured", "failed", "error", "never", "twice", "both", "wrong-id")
    steps.append(["answer", chance.choice(how)])
    if chance.random() < 0.15:
        steps += [
            ["wait", chance.choice((0.1, 3.0))],
            chance.choice((["log", "info"], ["progress"], ["ask-on", "sampling"])),
        ]
    return steps


def _make_step(chance: random.Random) -> list[Any]:
    kind = chance.random()
    if kind < 0.3:
        return ["wait", chance.choice((0.1, 1.0, 10.0, 100.0))]
    if kind < 0.5:
        return ["progress"]
    if kind < 0.6:
        return ["log", chance.choice(("debug", "info", "error"))]
    if kind < 0.9:
        return ["ask", chance.choice((*_KINDS, *_KINDS, "ping"))]
    if kind < 0.94:
        return [chance.choice(("updated", "updated", "changed"))]
    if kind < 0.985:
        return chance.choice((["ask-on", "sampling"], ["ask-on", "elicitation"], ["withdraw"]))
    return ["die"]


def _make_fault(plan: Plan, chance: random.Random) -> Act:
    at_s = round(chance.choice((0.1, 1.0, 5.0, 20.0)) * chance.uniform(0.5, 2), 3)
    kind = chance.random()
    if kind < 0.6:
        return _make_death(plan, chance)
    if kind < 0.8:
        return {"at": at_s, "do": chance.choice(("stop", "drain")), "client": chance.randrange(4)}
    if plan.front == "http" and kind < 0.9:
        return {
            "at": at_s,
            "do": chance.choice(("revoke", "steal", "terminate")),
            "principal": chance.choice(_PRINCIPALS),
        }
    return {"at": at_s, "do": "clock", "by_s": chance.choice((-3600, -5, 5, 86_400))}


def _make_death(plan: Plan, chance: random.Random) -> Act:
    at_s = round(chance.choice((0.1, 1.0, 5.0, 20.0)) * chance.uniform(0.5, 2), 3)
    whom = chance.choice(plan.servers).name
    return {"at": at_s, "do": chance.choice(("die", "die", "forget")), "whom": whom, "for_s": chance.choice((0, 1, 10))}
