"""Rules and marks about tasks: what a task comes to reaches who began it, and nobody else, and does not change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.dues import behaves, is_sound
from tests.world.peers.client_tasks import OVER, task_of
from tests.world.peers.words import PER_REQUEST, secrets_in
from tests.world.plan import Plan
from tests.world.rules import Asked, Talk, client_of, rule, short
from tests.world.situations import sometimes

_FORM: Final = HANDSHAKE_REVISIONS[-1]


@dataclass(frozen=True)
class Begun:
    """A call that has become a task, as its client, or its server, knows it.

    Attributes:
        peer: Who that is.
        call: The call.
        name: The id of the task.
        about: The requests about it.
    """

    peer: str
    call: Asked
    name: str
    about: list[Asked]

    @property
    def mark(self) -> tuple[str, str]:
        """The secret of the call."""
        return secrets_in(self.call.params["arguments"])[0]

    @property
    def follow(self) -> str:
        """What the client does about it."""
        return str(self.call.params["arguments"].get("follow", ""))

    def answers(self, method: str) -> Iterator[dict[str, Any]]:
        """Give what requests about it with a method were answered with."""
        for one in self.about:
            if one.frame["method"] == method:
                yield from (answer.frame for answer in one.answers)


def begun(talk: Talk, peer: str, requests: list[Asked]) -> Iterator[Begun]:
    """Give the calls among these requests that have become tasks."""
    for one in requests:
        for answer in one.answers[:1]:
            task = task_of(one.frame, answer.frame.get("result"))
            if task is not None and isinstance(task.get("taskId"), str) and secrets_in(one.params.get("arguments")):
                about = [other for other in requests if other.params.get("taskId") == task["taskId"]]
                yield Begun(peer, one, task["taskId"], about)


def _of_clients(talk: Talk) -> Iterator[Begun]:
    for peer in talk.clients():
        yield from begun(talk, peer, talk.asked[peer])


def _of_servers(talk: Talk) -> Iterator[Begun]:
    for peer in talk.servers():
        yield from begun(talk, peer, talk.got[peer])


def _taken(plan: Plan, talk: Talk) -> Iterator[tuple[str, Asked, Begun]]:
    """Give requests about tasks of somebody else."""
    owners = {one.name: one for one in _of_clients(talk)}
    for peer in talk.clients():
        own = {one.name for one in begun(talk, peer, talk.asked[peer])}
        for asked in talk.asked[peer]:
            named = asked.params.get("taskId")
            if named in owners and named not in own:
                yield peer, asked, owners[named]


@rule("own-task")
def nobody_uses_a_task_of_somebody_else(plan: Plan, talk: Talk) -> Iterator[str]:
    """A task is known to the session that began it; without sessions, to its principal."""
    for peer, asked, task in _taken(plan, talk):
        is_one = client_of(plan, peer).principal == client_of(plan, task.peer).principal
        if is_one and talk.record.revisions[peer] == talk.record.revisions[task.peer] == PER_REQUEST:
            continue
        for answer in asked.answers:
            if "result" in answer.frame:
                yield f"{peer} asked about a task of {task.peer}: {short(asked.frame)}, and heard {short(answer.frame)}"


@rule("task-ends")
def a_task_ends_once(plan: Plan, talk: Talk) -> Iterator[str]:
    """What a task has come to is the same each time that its client asks."""
    for one in _of_clients(talk):
        ended: list[Any] = []
        is_unanswered = _is_unanswered(talk, one)
        for asked in one.about:
            for answer in asked.answers if asked.frame["method"] == "tasks/get" else ():
                told = answer.frame.get("result") or {}
                if ended and told and told.get("status") != ended[0]:
                    yield f"{one.peer} was told {ended[0]} of {one.name}, and then {short(answer.frame)}"
                if told.get("status") in OVER:
                    ended.append(told["status"])
        whole = [*one.answers("tasks/result")]
        results = [frame["result"] for frame in whole if "result" in frame]
        told = [frame["result"] for frame in one.answers("tasks/get") if "result" in frame]
        results += [each["result"] for each in told if "result" in each]
        for said in results:
            is_of_call = one.mark in secrets_in(said) or (is_unanswered and said.get("isError") is True)
            if not is_of_call or said != results[0]:
                yield f"{one.peer} began {one.mark} as {one.name}, and heard {short(said)}"


def _is_unanswered(talk: Talk, one: Begun) -> bool:
    """Whether its server has done nothing but ask: what a client cannot be asked ends the call, in our words."""
    calls = (got for peer in talk.servers() for got in talk.got[peer] if got.frame["method"] == "tools/call")
    said = [answer.frame for got in calls if secrets_in(got.params)[:1] == [one.mark] for answer in got.answers]
    return bool(said) and all((frame.get("result") or {}).get("resultType") == "input_required" for frame in said)


def _asks(one: Begun) -> bool:
    return any(step[0] in ("ask", "ask-on") for step in one.call.params["arguments"]["steps"])


@rule("task-result")
def a_task_that_ends_well_is_fetched(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where no server fails, a client that behaves gets what its task has come to."""
    is_far = plan.router or plan.hops > 1
    if not is_sound(plan) or "task_s" in plan.options or plan.network.late_s > 1:
        return
    if is_far and any(one.is_slow for one in plan.servers):
        return
    for one in _of_clients(talk):
        how = next((step[1] for step in one.call.params["arguments"]["steps"] if step[0] == "answer"), "text")
        if how == "never":
            continue  # and so it never ends
        if not behaves(plan, one.peer) or one.follow in ("leave", "cancel") or _asks(one) or one.call.cancelled:
            continue
        is_new = talk.record.revisions[one.peer] == PER_REQUEST
        told = [frame.get("result") or {} for frame in one.answers("tasks/get")]
        got = told if is_new else [*one.answers("tasks/result")]
        wanted = "error" if how == "error" else "result"
        if any(asked.refused for asked in one.about) or sum(_waits(one)) > 100:
            continue
        if not any(wanted in frame for frame in got):
            yield f"{one.peer} began {one.mark} as {one.name}, and heard {short(got)}"


def _waits(one: Begun) -> Iterator[float]:
    return (step[1] for step in one.call.params["arguments"]["steps"] if step[0] == "wait")


@rule("task-cancelled")
def a_server_hears_that_a_task_is_cancelled(plan: Plan, talk: Talk) -> Iterator[str]:
    """A task that its client cancels while it is at work is cancelled at its server."""
    if plan.faults or plan.network.late_s > 1 or any(event.what == "dies" for event in talk.record.events):
        return
    theirs = {one.mark: one for one in _of_servers(talk)}
    calls = {
        mark: (peer, one)
        for peer in talk.servers()
        for one in talk.got[peer]
        if one.frame["method"] == "tools/call"
        for mark in secrets_in(one.params.get("arguments"))[:1]
    }
    for one in _of_clients(talk):
        cancelled = [asked for asked in one.about if asked.frame["method"] == "tasks/cancel"]
        if not any("result" in answer.frame for asked in cancelled for answer in asked.answers):
            continue
        peer, call = calls.get(one.mark, ("", one.call))
        if not peer or talk.is_gone(peer) or not behaves(plan, one.peer):
            continue
        task = theirs.get(one.mark)
        heard = task is not None and any(asked.frame["method"] == "tasks/cancel" for asked in task.about)
        after = cancelled[0].asked.there or cancelled[0].asked.turn
        was_over = task is None and any((answer.there or 1 << 60) < after for answer in call.answers)
        ended = task is not None and _is_over(talk, task, after)
        if not heard and call.cancelled is None and not was_over and not ended:
            yield f"{one.peer} cancelled {one.name}, and {peer} did not hear of it"


def _is_over(talk: Talk, task: Begun, turn: int) -> bool:
    """Whether a server had said before that a task is over."""
    for event in talk.by_peer[task.peer]:
        if event.is_said and event.turn < turn + 50 and isinstance(event.frame, dict):
            said = event.frame.get("result") or event.frame.get("params") or {}
            if said.get("taskId") == task.name and said.get("status") in OVER:
                return True
    waits = [asked for asked in task.about if asked.frame["method"] == "tasks/result"]
    return any(answer.turn < turn + 50 for asked in waits for answer in asked.answers)


def _form_of(talk: Talk, peer: str) -> str | None:
    return talk.record.revisions.get(peer)


def _is_fetched(one: Begun) -> bool:
    told = [frame.get("result") or {} for frame in one.answers("tasks/get")]
    return any("result" in frame for frame in (*told, *one.answers("tasks/result")))


def _crosses(talk: Talk, of_client: str, of_server: str) -> bool:
    """Whether a task of a client in one form was one of a server in another, and was fetched."""
    theirs = {one.mark: one.peer for one in _of_servers(talk)}
    return any(
        _form_of(talk, one.peer) == of_client
        and one.mark in theirs
        and _form_of(talk, theirs[one.mark]) == of_server
        and _is_fetched(one)
        for one in _of_clients(talk)
    )


@sometimes("a task of 2025-11-25 is fetched")
def _older(plan: Plan, talk: Talk) -> bool:
    return _crosses(talk, _FORM, _FORM)


@sometimes("a task of the extension is fetched")
def _newer(plan: Plan, talk: Talk) -> bool:
    return _crosses(talk, PER_REQUEST, PER_REQUEST)


@sometimes("a task of a client of 2025-11-25 is one of the extension at its server, and is fetched")
def _up(plan: Plan, talk: Talk) -> bool:
    return _crosses(talk, _FORM, PER_REQUEST)


@sometimes("a task of a client without a session is one of 2025-11-25 at its server, and is fetched")
def _down(plan: Plan, talk: Talk) -> bool:
    return _crosses(talk, PER_REQUEST, _FORM)


@sometimes("a call becomes a task for its client alone, because its server asks")
def _promoted(plan: Plan, talk: Talk) -> bool:
    theirs = {one.mark for one in _of_servers(talk)}
    return any(one.mark not in theirs and _is_fetched(one) and _asks(one) for one in _of_clients(talk))


@sometimes("a question about a task is answered, and the task goes on")
def _answered(plan: Plan, talk: Talk) -> bool:
    return any(
        asked.frame["method"] == "tasks/update" and asked.answers for p in talk.clients() for asked in talk.asked[p]
    )


@sometimes("somebody asks about a task of somebody else, at the same server")
def _steals(plan: Plan, talk: Talk) -> bool:
    return plan.scope != "client" and any(asked.answers for _, asked, _ in _taken(plan, talk))


@sometimes("a task is cancelled while it is at work")
def _cancelled(plan: Plan, talk: Talk) -> bool:
    return any(
        (frame.get("result") or {}).get("status") == "cancelled"
        for one in _of_clients(talk)
        for frame in one.answers("tasks/get")
    )


@sometimes("a server dies with a task")
def _dies(plan: Plan, talk: Talk) -> bool:
    return any(talk.is_gone(one.peer) for one in _of_servers(talk))
