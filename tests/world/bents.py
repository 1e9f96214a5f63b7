"""More of what a world may be bent on: situations that chance alone reaches rarely, or only where several things meet.

A bent changes a plan that is made already. Those of `plans` come first; each cell has the ones that can happen in it,
in an order that goes round with the seed, so that a few dozen worlds have been in every situation once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS
from tests.world.plan import Act, ClientPlan, Plan
from tests.world.streams import Manner

Bent = Callable[[Plan, random.Random], None]
Steps = list[list[Any]]

_KINDS: Final = ("sampling", "elicitation", "roots")
_PER_REQUEST: Final = REVISIONS[-1]


def _is_shared(plan: Plan) -> bool:
    return plan.scope != "client"


def call(at_s: float, number: int, server: str, steps: Steps, **more: Any) -> Act:
    """Give a call."""
    return {"at": at_s, "do": "call", "n": number, "server": server, "progress": False, "steps": steps, **more}


def _gather(plan: Plan, chance: random.Random, least: int = 2) -> None:
    """Have several clients of one principal there from the beginning, who do nothing yet, at servers that are well."""
    plan.faults.clear()
    plan.options.pop("open_requests", None)
    while len(plan.clients) < least:
        number = len(plan.clients)
        plan.clients.append(ClientPlan(f"c{number}", "ada", chance.choice(HANDSHAKE_REVISIONS[1:])))
    for client in plan.clients:
        client.principal, client.begins_s, client.has, client.acts = "ada", 0.0, list(_KINDS), []
        client.manner = chance.choice(("good", "good", "slow", "odd"))
        if _is_shared(plan) and client.revision == _PER_REQUEST and plan.front == "lines":
            client.revision = HANDSHAKE_REVISIONS[-1]
    for server in plan.servers:
        server.start_s = min(server.start_s, 0.5)
        if server.manner in ("garbles", "rude"):
            server.manner = "good"


def _with_sessions(plan: Plan, chance: random.Random) -> None:
    """Have servers open sessions."""
    for server in plan.servers:
        server.revisions = [chance.choice(HANDSHAKE_REVISIONS[1:])]


def _taking_turns(plan: Plan, chance: random.Random) -> None:
    """A shared server asks, so calls of different sessions wait for each other; some are given up while they wait."""
    _gather(plan, chance, 3)
    _with_sessions(plan, chance)
    if chance.random() < 0.4:
        plan.pool["turn_s"] = 8.0
    if chance.random() < 0.3:
        plan.pool["waiting_bytes"] = 500
    whom = plan.servers[0].name
    plan.clients[0].acts = [call(0.0, 0, whom, [["ask", "sampling"], ["wait", 1.0], ["answer", "text"]])]
    for client in plan.clients:
        for n in range(chance.randint(2, 4)):
            steps: Steps = [["wait", chance.choice((3.0, 6.0, 20.0))], ["ask", "elicitation"], ["answer", "text"]]
            client.acts.append(call(60.0 + n * chance.choice((0.0, 0.5)), 10 + n, whom, steps))
        if chance.random() < 0.6:
            client.acts.append({"at": 62.0, "do": "cancel", "of": 10 + chance.randrange(2), "n": 20})
        if chance.random() < 0.3:
            client.acts.append({"at": 63.0, "do": chance.choice(("leave", "cut")), "n": 21})
    if chance.random() < 0.3:
        plan.options["restarts"] = 2
        plan.faults = [{"at": 64.0, "do": "die", "whom": whom, "for_s": 0.0}]


def _levels(plan: Plan, chance: random.Random) -> None:
    """Clients want log messages of different levels, change their minds, and leave."""
    _gather(plan, chance)
    _with_sessions(plan, chance)
    whom = plan.servers[0].name
    for client in plan.clients:
        levels = chance.sample(("debug", "info", "warning", "error"), 2)
        client.acts.append({"at": chance.choice((0.0, 1.0)), "do": "level", "level": levels[0], "n": 0})
        if chance.random() < 0.5:
            client.acts.append({"at": 15.0, "do": "level", "level": levels[1], "n": 1})
        for n, at_s in enumerate((5.0, 20.0, 40.0)):
            said = [["log", level] for level in ("debug", "info", "error")]
            client.acts.append(call(at_s + chance.random(), 10 + n, whom, [*said, ["wait", 1.0], ["answer", "text"]]))
        if chance.random() < 0.4:
            client.acts.append({"at": 30.0, "do": "leave", "n": 30})
    if chance.random() < 0.3:
        plan.servers[0].manner = "declines"


def _flooding(plan: Plan, chance: random.Random) -> None:
    """A client reads nothing for a while, and its server says much; another one of the server's waits for an answer."""
    _gather(plan, chance)
    whom = plan.servers[0].name
    plan.network = Manner(room=4_000)
    plan.pool |= {"high_water_bytes": chance.choice((2_000, 20_000)), "stall_s": chance.choice((5.0, 30.0))}
    plan.front_options["high_water_bytes"] = 4_000
    first, *others = plan.clients
    first.acts = [{"at": 0.5, "do": "stall", "for": chance.choice((3.0, 20.0, 60.0)), "n": 0}]
    said = [["log", "error", 3_000] for _ in range(chance.choice((4, 10, 20)))]
    first.acts.append(call(0.6, 1, whom, [*said, ["answer", "text"]], level="info"))
    first.acts.append(call(1.0, 2, whom, [["progress"], ["answer", "text"]], progress=True))
    for other in others:
        other.acts = [
            call(at_s, n, whom, [["wait", 1.0], ["answer", "text"]]) for n, at_s in enumerate((1.0, 4.0, 50.0))
        ]
    for server in plan.servers[1:]:
        server.start_s = chance.choice((0.0, 6.0, 8.0))
    if chance.random() < 0.4:
        plan.options["restarts"] = 2
        dying = chance.choice(plan.servers).name
        plan.faults = [{"at": chance.choice((0.7, 1.8)), "do": "die", "whom": dying, "for_s": 0.0}]


def _using_again(plan: Plan, chance: random.Random) -> None:
    """Clients use ids of requests again that they have cancelled, and servers those of questions."""
    _gather(plan, chance, 1)
    whom = plan.servers[0].name
    for server in plan.servers:
        server.manner = chance.choice(("goes-on", "goes-on", "good", "words"))
    for client in plan.clients:
        client.manner, client.revision = chance.choice(("again", "again", "good")), chance.choice(HANDSHAKE_REVISIONS)
        for n in range(chance.randint(2, 5)):
            steps: Steps = [
                ["wait", chance.choice((1.0, 3.0))],
                ["progress"],
                ["ask-on", "sampling"],
                ["answer", "text"],
            ]
            client.acts.append(call(n * 1.0, n, whom, steps, progress=True))
            if n % 2 == 0 or chance.random() < 0.5:
                client.acts.append({"at": n + 0.3, "do": "cancel", "of": n, "n": 20 + n})
    if chance.random() < 0.3:
        plan.options["restarts"] = 2
        plan.faults.append({"at": 2.5, "do": "die", "whom": whom, "for_s": 0.0})


def _asking_badly(plan: Plan, chance: random.Random) -> None:
    """A server asks much, takes it back, asks again under an id that is not answered, and asks more than it may."""
    _gather(plan, chance)
    _with_sessions(plan, chance)
    whom = plan.servers[0].name
    plan.servers[0].manner = chance.choice(("good", "words", "rude"))
    if chance.random() < 0.5:
        plan.pool["questions"] = chance.choice((1, 2))
    if chance.random() < 0.2:
        plan.options["open_requests"] = 3
    for client in plan.clients:
        client.manner = chance.choice(("slow", "slow", "good", "mute"))
        client.has = [kind for kind in _KINDS if chance.random() < 0.7]
        for n in range(chance.randint(1, 3)):
            steps: Steps = [["ask-on", chance.choice(_KINDS)] for _ in range(chance.randint(1, 3))]
            steps.append(chance.choice((["ask-same", "sampling"], ["withdraw"], ["ask-on", "sampling"])))
            steps += [["wait", chance.choice((1.0, 8.0, 50.0))], ["answer", "text"]]
            client.acts.append(call(n * chance.choice((0.5, 20.0)), n, whom, steps))
        if chance.random() < 0.3:
            client.acts.append({"at": chance.choice((1.0, 25.0)), "do": chance.choice(("leave", "cut")), "n": 20})
    if chance.random() < 0.4:
        plan.options["restarts"] = chance.randint(1, 3)
        for at_s in (3.0, 30.0, 60.0)[: chance.randint(1, 3)]:
            plan.faults.append({"at": at_s, "do": "die", "whom": whom, "for_s": 0.0})


def _wanting(plan: Plan, chance: random.Random) -> None:
    """Clients want the same resources, some of which a server does not let them have; and they leave one by one."""
    _gather(plan, chance, 3)
    _with_sessions(plan, chance)
    whom = plan.servers[0].name
    plan.servers[0].manner = chance.choice(("declines", "declines", "good", "slow"))
    if chance.random() < 0.3:
        plan.pool["subscriptions"] = chance.choice((1, 2))
    wants = {"of": 0, "common": True, "server": whom}
    for client in plan.clients:
        client.acts.append({"at": chance.choice((0.0, 0.0, 3.0)), "do": "subscribe", **wants, "n": 0})
        client.acts.append({"at": 3.5, "do": "subscribe", "server": whom, "n": 1})
        if chance.random() < 0.4:
            client.acts.append({"at": 6.0, "do": "unsubscribe", **wants, "n": 2})
        if chance.random() < 0.4:
            client.acts.append({"at": 6.5, "do": "subscribe", **wants, "n": 3})
        for n, at_s in enumerate((8.0, 25.0)):
            client.acts.append(call(at_s, 10 + n, whom, [["updated"], ["wait", 1.0], ["answer", "text"]]))
        if chance.random() < 0.4:
            client.acts.append({"at": 15.0, "do": "leave", "n": 20})
    if chance.random() < 0.3:
        plan.options["restarts"] = 2
        at_s = chance.choice((0.2, 3.2, 3.7, 6.7, 10.0))
        plan.faults.append({"at": at_s, "do": "die", "whom": whom, "for_s": 0.0})


def _silent(plan: Plan, chance: random.Random) -> None:
    """A server falls silent while it is looked after."""
    _gather(plan, chance, 1)
    whom = plan.servers[0].name
    plan.options["health_s"] = 20.0
    if chance.random() < 0.6:
        plan.options["restarts"] = chance.randint(1, 3)
    for client in plan.clients:
        for n, at_s in enumerate((0.0, 5.0, 70.0, 150.0)):
            client.acts.append(call(at_s, n, whom, [["wait", chance.choice((1.0, 15.0))], ["answer", "text"]]))
    for client in plan.clients[1:]:
        client.begins_s = chance.choice((0.0, 0.0, 80.0))
    plan.faults.append({"at": chance.choice((7.0, 30.0)), "do": "silence", "whom": whom})


def _lasting(plan: Plan, chance: random.Random) -> None:
    """Sessions last, and their server is lost now and then: each time it was well before."""
    _gather(plan, chance, 1)
    whom = plan.servers[0].name
    plan.options["restarts"] = chance.randint(1, 2)
    for client in plan.clients:
        for n in range(6):
            client.acts.append(call(n * 50.0, n, whom, [["wait", chance.choice((0.1, 20.0))], ["answer", "text"]]))
            client.acts.append({"at": n * 50.0 + 30.0, "do": "read", "n": 20 + n, "server": whom})
    for at_s in (45.0, 95.0, 145.0, 195.0)[: chance.randint(2, 4)]:
        plan.faults.append({"at": at_s, "do": chance.choice(("die", "die", "forget")), "whom": whom, "for_s": 0.0})


def _suspecting(plan: Plan, chance: random.Random) -> None:
    """Calls end without an answer, by more clients than are remembered, and then the server speaks of them."""
    _gather(plan, chance, 3)
    _with_sessions(plan, chance)
    whom = plan.servers[0].name
    plan.servers[0].manner = "goes-on"
    plan.pool["suspects"] = chance.choice((1, 2, 3))
    if chance.random() < 0.5:
        plan.options["request_timeout_s"] = 5.0
    for client in plan.clients:
        client.principal = chance.choice(("ada", "ada", "bob"))
        late = chance.choice((["ask-on", "sampling"], ["log", "error"], ["ask", "elicitation"]))
        for n in range(chance.randint(1, 3)):
            steps: Steps = [["wait", chance.choice((2.0, 12.0))], late, ["answer", chance.choice(("never", "text"))]]
            client.acts.append(call(n * 0.5, n, whom, steps))
            if chance.random() < 0.7:
                client.acts.append({"at": n * 0.5 + 0.2, "do": "cancel", "of": n, "n": 10 + n})
        quiet = chance.choice(("tools", "prompts"))
        client.acts.append({"at": 11.0, "do": "list", "what": quiet, "n": 18})
        client.acts.append(
            call(20.0, 19, whom, [["wait", 9.0], ["log", "error"], ["ask-on", "roots"], ["answer", "text"]])
        )
        if chance.random() < 0.4:
            client.acts.append({"at": 9.0, "do": chance.choice(("leave", "cut")), "n": 20})
        client.acts.sort(key=lambda act: float(act["at"]))
    if chance.random() < 0.3:
        plan.options["restarts"] = 2
        plan.faults.append({"at": chance.choice((9.5, 15.0)), "do": "die", "whom": whom, "for_s": 0.0})


def _declaring(plan: Plan, chance: random.Random) -> None:
    """Requests without a session say different things of what their client can be asked; servers have sessions."""
    _gather(plan, chance, 1)
    _with_sessions(plan, chance)
    whom = plan.servers[0].name
    plan.servers[0].manner = chance.choice(("good", "rude", "words"))
    if chance.random() < 0.5:
        plan.options["questions"] = chance.choice(("task", "park", "replay", "refuse"))
    for client in plan.clients:
        if not _is_shared(plan) or plan.front == "http":
            client.revision = _PER_REQUEST
        for n in range(chance.randint(2, 8)):
            has = [kind for kind in _KINDS if chance.random() < 0.5]
            steps: Steps = [
                ["ask", chance.choice(_KINDS)],
                ["wait", chance.choice((0.5, 5.0, 60.0))],
                ["answer", "text"],
            ]
            client.acts.append(call(n * chance.choice((0.2, 3.0)), n, whom, steps, has=has))
        client.acts.append(call(400.0, 20, whom, [["answer", "text"]], has=[]))
        if chance.random() < 0.4:
            client.acts.append({"at": 5.0, "do": "cancel", "of": 0, "n": 21})
        client.acts.sort(key=lambda act: float(act["at"]))
    if chance.random() < 0.5:
        plan.faults.append({"at": chance.choice((4.0, 10.0)), "do": "die", "whom": whom, "for_s": 0.0})


def _timing_out(plan: Plan, chance: random.Random) -> None:
    """Requests take too long at servers that go on, and speak of them later; ids are used again meanwhile."""
    _gather(plan, chance)
    whom = plan.servers[0].name
    plan.servers[0].manner = chance.choice(("goes-on", "goes-on", "words", "good"))
    plan.options["request_timeout_s"] = 5.0
    if plan.hops > 1 and chance.random() < 0.5:
        plan.inner["request_timeout_s"], plan.options["request_timeout_s"] = 5.0, 60.0
    plan.options.pop("health_s", None)
    for client in plan.clients:
        for n in range(chance.randint(2, 4)):
            how = [chance.choice((["progress"], ["log", "error"], ["ask-on", "sampling"], ["wait", 0.1]))]
            steps: Steps = [
                ["wait", 3.0],
                *how,
                ["wait", chance.choice((1.0, 4.0, 9.0))],
                *how,
                ["answer", "text"],
                *how,
            ]
            client.acts.append(call(n * chance.choice((0.0, 3.0)), n, whom, steps, progress=True))
        client.acts.sort(key=lambda act: float(act["at"]))
        if chance.random() < 0.3:
            client.acts.append({"at": 20.0, "do": chance.choice(("leave", "cut")), "n": 20})


def _opening(plan: Plan, chance: random.Random) -> None:
    """Servers take long to open, or never do, and clients say much before, cancel it, and leave."""
    _gather(plan, chance)
    for server in plan.servers:
        server.start_s = chance.choice((3.0, 10.0, 70.0))
        server.manner = chance.choice(("good", "good", "garbles"))
    plan.options.pop("greets", None) if chance.random() < 0.5 else plan.options.update(greets=True)
    for client in plan.clients:
        client.begins_s = chance.choice((0.0, 1.0, 5.0))
        client.revision = _PER_REQUEST if not _is_shared(plan) and chance.random() < 0.6 else client.revision
        if plan.front == "lines" and client.revision != _PER_REQUEST and chance.random() < 0.7:
            client.manner = chance.choice(("hasty", "unsure"))
        for n in range(chance.randint(1, 4)):
            client.acts.append(call(n * 0.5, n, chance.choice(plan.servers).name, [["answer", "text"]]))
        if chance.random() < 0.4:
            client.acts.append({"at": 2.2, "do": "cancel", "of": chance.randrange(2), "n": 10})
        if chance.random() < 0.4:
            client.acts.append({"at": 2.5, "do": chance.choice(("leave", "cut")), "n": 11})
    if chance.random() < 0.4:
        whom = plan.servers[0].name
        plan.faults.append({"at": chance.choice((2.0, 4.0)), "do": "die", "whom": whom, "for_s": 0.0})


def _asking_early(plan: Plan, chance: random.Random) -> None:
    """Servers ask as soon as they are open, before there is any call, and take it back or not."""
    _gather(plan, chance, 1)
    _with_sessions(plan, chance)
    plan.servers[0].manner = "eager"
    whom = plan.servers[0].name
    for client in plan.clients:
        if not _is_shared(plan) or plan.front == "http":
            client.revision = _PER_REQUEST
        client.manner = chance.choice(("good", "slow", "slow", "slow", "mute"))
        for n in range(chance.randint(1, 4)):
            steps: Steps = [["ask-on", chance.choice(_KINDS[:2])], ["wait", chance.choice((0.5, 6.0))]]
            client.acts.append(call(n * chance.choice((0.3, 4.0)), n, whom, [*steps, ["answer", "text"]]))
    if chance.random() < 0.7:
        plan.options["restarts"] = chance.randint(1, 2)
    if chance.random() < 0.7:
        plan.faults.append({"at": chance.choice((1.5, 4.0, 9.0)), "do": "die", "whom": whom, "for_s": 0.0})


def _refused(plan: Plan, chance: random.Random) -> None:
    """A server refuses to open a session, or says nothing that can be read, and its client goes on asking."""
    _gather(plan, chance)
    _with_sessions(plan, chance)
    plan.servers[0].manner = chance.choice(("refuses", "refuses", "garbles"))
    for client in plan.clients:
        client.manner = chance.choice(("stubborn", "stubborn", "good", "hasty" if plan.front == "lines" else "good"))
        client.begins_s = chance.choice((0.0, 0.0, 2.0))
        for n in range(3):
            client.acts.append(call(n * 1.0, n, plan.servers[0].name, [["answer", "text"]]))


def _reopening(plan: Plan, chance: random.Random) -> None:
    """Servers without a handshake are lost and opened again; clients are answered from what is remembered of them."""
    _gather(plan, chance)
    whom = plan.servers[0].name
    plan.options["greets"] = True
    for server in plan.servers:
        server.revisions, server.start_s = [_PER_REQUEST], chance.choice((0.0, 2.5, 6.0))
    for client in plan.clients:
        client.begins_s = chance.choice((0.0, 30.0, 60.0))
        for n in range(chance.randint(2, 6)):
            at_s = n * chance.choice((1.0, 15.0))
            listed: Act = {"at": at_s, "do": "list", "what": chance.choice(("tools", "prompts")), "n": n}
            called = call(at_s, n, whom, [["wait", 1.0], ["answer", "text"]])
            client.acts.append(chance.choice((called, listed, {"at": at_s, "do": "read", "server": whom, "n": n})))
        client.acts.insert(0, {"at": 0.0, "do": "list", "what": "tools", "n": 20})
        client.acts.sort(key=lambda act: float(act["at"]))
    for at_s in (12.0, 40.0, 70.0)[: chance.randint(1, 3)]:
        plan.faults.append({"at": at_s, "do": "die", "whom": whom, "for_s": chance.choice((0.0, 3.0))})


def _forgetting(plan: Plan, chance: random.Random) -> None:
    """A server over HTTP forgets its sessions while clients think about what it asked; the next one asks the same."""
    _gather(plan, chance, 1)
    _with_sessions(plan, chance)
    for server in plan.servers:
        server.link = "http" if plan.cell == "http" else server.link
        server.start_s = chance.choice((0.0, 2.5, 6.0))
    whom = plan.servers[0].name
    plan.options["restarts"] = 3
    for client in plan.clients:
        client.manner = chance.choice(("slow", "slow", "good"))
        for n in range(chance.randint(3, 6)):
            asks: Steps = [["ask-on", chance.choice(("ping", "sampling", "elicitation"))]]
            steps: Steps = [*asks, ["wait", chance.choice((1.0, 8.0))], ["ask", "sampling"], ["answer", "text"]]
            client.acts.append(call(n * chance.choice((1.0, 3.0)), n, whom, steps))
        client.acts.sort(key=lambda act: float(act["at"]))
    for at_s in (1.3, 4.1, 7.3, 11.7)[: chance.randint(1, 4)]:
        what = chance.choice(("forget", "forget", "die"))
        plan.faults.append({"at": at_s, "do": what, "whom": whom, "for_s": chance.choice((0.0, 0.5))})


def _between(plan: Plan, chance: random.Random) -> None:
    """Several people share a server, which speaks of calls that it has answered, and of those of who has left."""
    _gather(plan, chance, 3)
    _with_sessions(plan, chance)
    whom = plan.servers[0].name
    plan.servers[0].link = chance.choice(("lines", plan.servers[0].link))
    plan.servers[0].manner = chance.choice(("good", "goes-on"))
    for number, client in enumerate(plan.clients):
        client.principal = chance.choice(("ada", "ada", "bob"))
        late = chance.choice((["ask-on", "sampling"], ["log", "error"], ["ask-on", "elicitation"]))
        for n in range(chance.randint(1, 3)):
            steps: Steps = [
                ["wait", chance.choice((0.5, 2.0))],
                ["answer", "text"],
                ["wait", chance.choice((1.0, 9.0))],
            ]
            client.acts.append(call(n * 4.0 + number, n, whom, [*steps, late, ["wait", 3.0], late]))
        if chance.random() < 0.6:
            waits = ["wait", chance.choice((6.0, 15.0))]
            client.acts.append(call(3.0 + number, 10, whom, [waits, ["ask", "sampling"], waits, ["answer", "text"]]))
        if chance.random() < 0.4:
            client.acts.append({"at": chance.choice((3.5, 7.0)), "do": chance.choice(("leave", "cut")), "n": 20})
        client.acts.sort(key=lambda act: float(act["at"]))
    if chance.random() < 0.3:
        plan.options["restarts"] = 2
        plan.faults = [{"at": chance.choice((5.0, 12.0)), "do": "die", "whom": whom, "for_s": 0.0}]


def _rounds(plan: Plan, chance: random.Random) -> None:
    """Calls at servers without a handshake ask their client several times, and end meanwhile; or their client does."""
    _gather(plan, chance, 1)
    whom = plan.servers[0].name
    for server in plan.servers:
        server.revisions = [_PER_REQUEST]
    for client in plan.clients:
        client.revision, client.manner = chance.choice(HANDSHAKE_REVISIONS[1:]), chance.choice(("slow", "slow", "good"))
        for n in range(chance.randint(1, 4)):
            first = ["ask", *chance.sample(_KINDS, chance.choice((1, 1, 2, 3)))]
            steps: Steps = [first, ["ask", chance.choice(_KINDS[:2])], ["answer", "text"]]
            client.acts.append(call(n * chance.choice((0.5, 5.0)), n, whom, steps, progress=True))
            if chance.random() < 0.5:
                client.acts.append({"at": n + chance.choice((0.3, 2.0, 9.0)), "do": "cancel", "of": n, "n": 20 + n})
        if chance.random() < 0.3:
            at_s = chance.choice((1.5, 8.0))
            client.acts.append({"at": at_s, "do": chance.choice(("leave", "cut", "cut")), "n": 40})
        client.acts.sort(key=lambda act: float(act["at"]))
    if chance.random() < 0.3:
        what = chance.choice(("die", "stop"))
        plan.faults.append({"at": chance.choice((2.0, 6.0)), "do": what, "whom": whom, "client": 0, "for_s": 0.0})


def _starting_again(plan: Plan, chance: random.Random) -> None:
    """While a server is started again, clients call it, give that up and leave; then it asks those who are there."""
    _gather(plan, chance)
    _with_sessions(plan, chance)
    server = plan.servers[0]
    server.start_s, server.manner = chance.choice((0.5, 2.5, 6.0)), chance.choice(("good", "goes-on", "words"))
    plan.options["restarts"] = 2
    for client in plan.clients:
        client.acts.append(call(1.0, 0, server.name, [["wait", chance.choice((0.5, 30.0))], ["answer", "text"]]))
        for n in range(chance.randint(1, 3)):
            at_s = 20.0 + chance.choice((0.1, 0.4, 1.0, 2.0))
            client.acts.append(
                call(at_s, 10 + n, server.name, [["ask", chance.choice(_KINDS[:2])], ["answer", "text"]])
            )
        if chance.random() < 0.4:
            client.acts.append({"at": 20.0 + chance.choice((0.6, 1.5)), "do": "cancel", "of": 10, "n": 20})
        if chance.random() < 0.5:
            at_s = 20.0 + chance.choice((0.45, 1.2, 2.5))
            client.acts.append({"at": at_s, "do": chance.choice(("leave", "cut")), "n": 21})
        client.acts.append(call(50.0, 30, server.name, [["wait", 1.0], ["ask", "sampling"], ["answer", "text"]]))
        client.acts.sort(key=lambda act: float(act["at"]))
    plan.faults = [{"at": 20.0, "do": "die", "whom": server.name, "for_s": 0.0}]
    if chance.random() < 0.4:
        again_s = 20.0 + chance.choice((2.0, 9.0))
        plan.faults.append({"at": again_s, "do": "die", "whom": server.name, "for_s": 0.0})


EVERYWHERE: Final[tuple[Bent, ...]] = (
    *(_using_again, _asking_badly, _timing_out, _declaring, _lasting, _silent, _opening, _flooding, _levels),
    *(_asking_early, _refused, _reopening, _forgetting, _rounds, _starting_again),
)
AMONG_SEVERAL: Final[tuple[Bent, ...]] = (_taking_turns, _wanting, _suspecting, _between)
"""Those for servers that may be shared."""
