"""Servers that are processes: rules about them are broken by the least, and the kernel is as strict as a real one."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from dragoman.errors import TransportClosed
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.status import StatusBoard
from dragoman.transports.base import Transport
from dragoman.transports.stdio import ChildTransport
from dragoman.transports.warden import Warden
from tests.world.loop import WorldLoop
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.programs import GOINGS
from tests.world.record import Record
from tests.world.rules import Talk, judge
from tests.world.system import System, installed
from tests.world.test_flows import REVISION, WELL, Said, asked, broken, call, opened
from tests.world.worlds import Outcome, World, run_world

WORDS = [(1, "s0.1", "writes on stderr", "s0.1 is here"), (1, "s0.1", "writes on stderr", "s0.1 is busy")]
EXITS = (9, "s0.1", "exits", "0")

BREAKS: dict[str, tuple[Sequence[Sequence[Said]], dict[str, Any]]] = {
    "ended-in-order": ((*WELL[:-1], [(2, "s0.1", "gets SIGTERM", None), EXITS]), {}),
    "ended-in-time": ((*WELL[:-1], [(2, "s0.1", "input ends", None), (20, "s0.1", "exits", "-9")]), {}),
    "words-told": ((*WELL[:-1], WORDS, [EXITS]), {"words": [("session 1 of ada", "s0.1 is here")]}),
    "own-words": (
        (*WELL[:-1], WORDS[:1], [EXITS]),
        {"front": "http", "words": [("session 1 of bob", "s0.1 is here")]},
    ),
}


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_notices_what_breaks_it(rule: str) -> None:
    parts, more = BREAKS[rule]
    assert rule in broken(*parts, **more)


@pytest.mark.parametrize(
    "events",
    [
        [(2, "s0.1", "input ends", None), (5, "s0.1", "gets SIGKILL", None)],
        [(2, "s0.1", "input ends", None), (5, "s0.1", "gets SIGTERM", None), (5, "s0.1", "gets SIGKILL", None)],
        [(2, "s0.1", "input ends", None), (5, "s0.1", "gets SIGTERM", None), (6, "s0.1", "gets SIGTERM", None)],
    ],
)
def test_a_process_that_is_not_given_time_is_noticed(events: list[Said]) -> None:
    assert "ended-in-order" in broken(*WELL[:-1], events, [EXITS])


def test_words_in_another_order_are_noticed() -> None:
    said = [("", "s0: s0.1 is busy"), ("", "s0: s0.1 is here")]
    assert "words-told" in broken(*WELL[:-1], WORDS, [EXITS], words=said)
    assert "words-told" not in broken(*WELL[:-1], WORDS, [EXITS], words=said[::-1])


def world_of(going: str, steps: list[Any], **more: Any) -> Outcome:
    """Give what becomes of a server that is a process, and of two calls of its client."""
    acts = [{"at": 1.0, "do": "call", "n": 0, "server": "s0", "progress": False, "steps": steps}]
    acts += [{"at": 1.0, "do": "call", "n": 1, "server": "s0", "progress": False, "steps": [["answer", "text"]]}]
    plan = Plan("children", 1, children={"room": 65536}, **more)
    plan.servers = [ServerPlan("s0", [REVISION], going=going)]
    plan.clients = plan.clients or [ClientPlan("c0", "ada", REVISION, acts=acts)]
    return run_world(plan)


@pytest.mark.parametrize("going", GOINGS)
def test_a_process_goes_whatever_it_heeds(going: str) -> None:
    outcome = world_of(going, [["stderr", 2], ["answer", "text"]])
    assert outcome.findings == []
    told = [event.what for event in outcome.record.of("s0.1")]
    assert ("gets SIGTERM" in told) is (going not in ("at once", "slow"))
    assert ("gets SIGKILL" in told) is going.endswith("stubborn")
    assert [text for _, text in outcome.record.words] == ["s0.1 on secret-c0-0 line 0", "s0.1 on secret-c0-0 line 1"]


def test_a_process_that_is_not_made_to_go_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def leave(transport: ChildTransport) -> None: ...

    monkeypatch.setattr(ChildTransport, "_end_child", leave)
    assert {"nothing-left", "ended-in-time"} <= {one.rule for one in world_of("deaf", [["answer", "text"]]).findings}


def test_clients_that_come_while_a_server_is_started_again_get_the_same_one() -> None:
    def client(name: str, begins_s: float, at_s: float, *steps: list[Any]) -> ClientPlan:
        done = [*steps, ["answer", "text"]]
        act = {"at": at_s, "do": "call", "n": 0, "server": "s0", "progress": False, "steps": done}
        return ClientPlan(name, "ada", REVISION, acts=[act], begins_s=begins_s)

    clients = [client("c0", 0.0, 1.0, ["die"]), client("c1", 0.0, 1.5), client("c2", 5.0, 1.0)]
    outcome = world_of("leaves", [], clients=clients, scope="shared", options={"restarts": 2})
    assert outcome.findings == []
    assert any("broken pipe" in text for _, text in outcome.record.log)
    assert Talk(outcome.record).servers() == ["s0.1", "s0.2"]


async def _ends_by_the_warden(made: World) -> None:
    assert made.children is not None
    warden = Warden(1.0)
    child = subprocess.Popen(["s0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    warden.watch(child.pid)
    await asyncio.sleep(0)
    made.children.kernel.lose()
    await asyncio.sleep(5)
    made.children.note_left()


def in_a_kernel(work: Callable[[World], Coroutine[Any, Any, None]]) -> Record:
    """Do something in a world that has processes and nobody else; give what happened."""
    plan = Plan("children", 1, children={"room": 8192})
    plan.servers = [ServerPlan("s0", [REVISION], going="wrapped stubborn")]
    with installed(System("test")) as system:
        loop = WorldLoop(system)
        made = World(plan, system, loop)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(work(made))
        system.forget()
    return made.record


def test_the_warden_ends_what_is_left_when_the_proxy_is_killed() -> None:
    record = in_a_kernel(_ends_by_the_warden)
    told = [(event.what, event.frame) for event in record.of("s0.1") if event.what.startswith("gets")]
    assert told == [("gets SIGTERM", "the warden"), ("gets SIGKILL", "the warden")]
    assert record.notes == []


async def _is_strict(made: World) -> None:
    reads, writes = os.pipe()
    with pytest.raises(BlockingIOError):
        os.read(reads, 10)
    assert os.write(writes, b"x" * 10_000) == 8192
    with pytest.raises(BlockingIOError):
        os.write(writes, b"y")
    heard: list[bytes] = []
    loop = asyncio.get_running_loop()
    loop.add_reader(reads, lambda: heard.append(os.read(reads, 5000)))
    await asyncio.sleep(0.1)
    assert [len(one) for one in heard] == [5000, 3192]
    loop.remove_reader(reads)
    os.close(reads)
    with pytest.raises(BrokenPipeError):
        os.write(writes, b"z")
    os.close(writes)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.close(writes)
    child = subprocess.Popen(["s0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    os.killpg(child.pid, signal.SIGTERM)  # what it has started heeds nothing
    assert child.wait() == -signal.SIGTERM
    os.killpg(child.pid, 0)
    os.killpg(child.pid, signal.SIGKILL)
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
    for stream in (child.stdin, child.stdout):
        stream.close()  # type: ignore[union-attr]
    made.children.note_left()  # type: ignore[union-attr]


def test_descriptors_and_groups_are_those_of_a_real_system() -> None:
    assert in_a_kernel(_is_strict).notes == []


def test_what_is_left_open_is_noticed() -> None:
    async def leave(made: World) -> None:
        os.pipe()
        made.children.note_left()  # type: ignore[union-attr]

    notes = in_a_kernel(leave).notes
    assert [rule for rule, _ in notes] == ["nothing-left"] * 2


def test_a_process_in_which_all_is_well_breaks_no_rule() -> None:
    assert broken(opened(), asked(1, call(1)), [(1, "s0.1", "gets SIGHUP", None)]) & BREAKS.keys() == set()
    assert judge(Plan("children", 1), Talk(Record(System("test")))) == []


def test_a_shared_server_that_cannot_be_started_is_shown_to_nobody() -> None:
    async def find() -> list[Any]:
        board = StatusBoard()

        def connect() -> Transport:
            raise TransportClosed("s0", "command not found")

        with pytest.raises(TransportClosed):
            UpstreamPool(Scope.SHARED, connect).find("everybody", ProxyConfig(board=board))
        return list(board.read().to_json()["servers"])

    assert asyncio.run(find()) == []
