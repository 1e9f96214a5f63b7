"""What must be so in every world, whatever happens: each rule is a function over what happened.

A rule looks at the record of one world and gives a sentence for each place where it was broken. To add one: write the
function, decorate it with `@rule` and a name, and break it once on purpose (`tests/world/test_rules.py` does so for
those that are here).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import dragoman_spec
from tests.world.peers.client_tasks import task_of
from tests.world.peers.words import PER_REQUEST, key_of, nonces_in, secrets_in
from tests.world.plan import ENDS_ALL, ClientPlan, Plan
from tests.world.record import Body, Event
from tests.world.talk import Asked as Asked
from tests.world.talk import Talk as Talk


@dataclass(frozen=True)
class Finding:
    """A rule that was broken.

    Attributes:
        rule: Its name.
        text: What happened.
    """

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


Rule = Callable[[Plan, "Talk"], Iterator[str]]

_UNKNOWN: Final = ("tasks/", "notifications/tasks", "notifications/nobody-knows")
"""What the schemas do not have: methods of an extension, and one that a client made up, which passes as it is."""

_SILENT: Final = ("never", "wrong-id", "both")
"""Ways to answer that are none."""

_ANSWERED: Final = ("tools/call", "resources/read", "prompts/get", "completion/complete")
"""Methods whose answers say the secret of the request."""

RULES: Final[dict[str, Rule]] = {}
"""All rules, by name."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Make a function a rule, under a name that no other has."""

    def note(function: Rule) -> Rule:
        assert name not in RULES, f"two rules are called {name}"
        RULES[name] = function
        return function

    return note


def judge(plan: Plan, talk: Talk) -> list[Finding]:
    """Hold what happened against every rule."""
    found = [Finding(name, text) for name, text in talk.record.notes]
    for name, function in RULES.items():
        found += [Finding(name, text) for text in function(plan, talk)]
    return found


def client_of(plan: Plan, name: str) -> ClientPlan:
    return next(client for client in plan.clients if client.name == name)


def short(frame: Any) -> str:
    text = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
    return text if len(text) < 400 else f"{text[:400]}…"


def _script(asked: Asked) -> list[list[Any]]:
    """Give the steps of a call."""
    arguments = asked.params.get("arguments")
    return list(arguments.get("steps", [])) if isinstance(arguments, dict) else []


def _answer_of(asked: Asked) -> str:
    """Say how the server is told to answer a call."""
    script = _script(asked)
    return (
        next((step[1] for step in script if step[0] == "answer"), "never")
        if script or asked.params.get("arguments")
        else "text"
    )


def is_asking(frame: Body) -> bool:
    """Whether a response is a question, or a task: what it is about goes on."""
    said = frame.get("result")
    return isinstance(said, dict) and (
        said.get("resultType") in ("input_required", "task") or isinstance(said.get("task"), dict)
    )


@rule("one-answer")
def each_request_has_exactly_one_answer(plan: Plan, talk: Talk) -> Iterator[str]:
    """Each request of a client has one answer, or its client left, or it was cancelled, or its server keeps silent."""
    for peer in talk.clients():
        for one in talk.asked[peer]:
            method = one.frame["method"]
            if len(one.answers) > 1:
                yield f"{peer} heard {len(one.answers)} answers to {method} with the id {one.frame['id']!r}"
            silent = method == "subscriptions/listen" or (
                method == "tools/call" and _answer_of(one) in ("never", "wrong-id", "both")
            )
            ended = _is_ended_early(talk, peer)
            waits = any(step[0] == "ask" for step in _steps_of(plan, one)) and not _can_all_answer(plan)
            left = next((event.turn for event in talk.by_peer[peer] if event.what == "leaves"), 1 << 60)
            in_time = [answer for answer in one.answers if answer.turn < left]
            if not (in_time or one.cancelled or one.refused or silent or waits or ended) and _is_patient(plan, one):
                yield f"{peer} has no answer to {method} with the id {one.frame['id']!r}"


def _steps_of(plan: Plan, one: Asked) -> list[list[Any]]:
    """Give the steps that a request waits for: of its call, or of any that its client has made a task of."""
    if one.frame["method"] != "tasks/result":
        return _script(one)
    return [step for act in client_of(plan, one.asked.peer).acts for step in act.get("steps", [])]


def _is_ended_early(talk: Talk, peer: str) -> bool:
    """Whether a client's connection ended before it had waited for everything, and left."""
    return (
        next((event.what for event in talk.by_peer[peer] if event.what in ("leaves", "ends", "is cut")), "") != "leaves"
    )


def _can_all_answer(plan: Plan) -> bool:
    """Whether every question is answered, sooner or later: a call may wait for those of other clients."""
    return all(client.manner in ("good", "slow", "odd", "twice") for client in plan.clients) and not any(
        act["do"] in ("stall", "junk") for client in plan.clients for act in client.acts
    )


def _is_patient(plan: Plan, one: Asked) -> bool:
    """Whether a client left only after it had waited for longer than anything takes."""
    client = client_of(plan, one.asked.peer)
    if client.manner == "again":
        return False  # it may have taken the late answer to another call for this one's
    return one.asked.there is not None and not any(act["do"] == "leave" for act in client.acts)


@rule("asked-for")
def nobody_hears_an_answer_to_what_was_not_asked(plan: Plan, talk: Talk) -> Iterator[str]:
    """A client, or a server, is answered only what it asked, once."""
    for event in talk.unasked:
        is_refusal = event.frame.get("id") is None and any(one.refused for one in talk.asked[event.peer])
        if (event.frame.get("id") is not None or event.peer.startswith("s")) and not is_refusal:
            yield f"{event.peer} heard an answer to what it did not ask: {short(event.frame)}"
    for peer in talk.servers():
        for one in talk.asked[peer]:
            if len(one.answers) > 1 and not one.is_muddled:
                yield f"{peer} heard {len(one.answers)} answers to its question {short(one.frame)}"


@rule("own-secrets")
def nobody_hears_a_secret_of_somebody_else(plan: Plan, talk: Talk) -> Iterator[str]:
    """What is said about a call is heard by its client alone."""
    named = {client.name: client.principal if plan.front == "http" else "" for client in plan.clients}
    for peer in talk.clients():
        for event in talk.by_peer[peer]:
            if not event.is_heard:
                continue
            is_own_guess = plan.front == "http" and (is_asking(event.frame) or _is_of_task(event.frame))
            for owner, number in secrets_in(event.frame):
                is_between = named.get(owner) != named.get(peer)
                if owner != peer and (is_between or not (is_own_guess or _is_guessed(plan, talk, event, owner))):
                    yield f"{peer} heard the secret {number} of {owner}: {short(event.frame)}"


def _is_of_task(frame: Body) -> bool:
    """Whether somebody is told of a task: of a principal without sessions, whoever knows its id may ask."""
    said = frame.get("result")
    return isinstance(said, dict) and "taskId" in said


def _is_guessed(plan: Plan, talk: Talk, event: Event, owner: str) -> bool:
    """Whether it is known that this may go astray: late words at a server of one principal, or of whom nobody knows."""
    frame = event.frame
    if plan.scope == "client":
        return plan.front == "http" and is_asking(frame)  # clients without sessions share the server of their principal
    if frame.get("method") == "notifications/message":
        return True
    return any(
        _is_late(talk, server, number, owner if plan.hops == 1 else "", event.peer)
        for server, number in nonces_in(frame)
    )


def _is_late(talk: Talk, server: str, number: str, owner: str, hearer: str) -> bool:
    """Whether a server put this question when it had answered the call already.

    Then it may go to who has a call open, or to the only one who ever made any; but to nobody if who called is gone.
    """
    put = next((one for one in talk.asked[server] if (server, number) in nonces_in(one.frame)), None)
    if put is None or (_is_gone(talk, owner, put.asked.turn) and not _is_at_work(talk, hearer, put.asked.turn)):
        return False
    marks = secrets_in(put.frame)
    about = [one for one in talk.got[server] if one.frame["method"] == "tools/call" and secrets_in(one.params) == marks]
    return any(answer.turn < put.asked.turn for one in about for answer in one.answers)


def _is_gone(talk: Talk, client: str, turn: int) -> bool:
    """Whether a session was over at a turn: then nobody is asked in its place."""
    return any(event.what in ("ends", "is cut") and event.turn < turn for event in talk.by_peer.get(client, ()))


def _is_at_work(talk: Talk, client: str, turn: int) -> bool:
    """Whether a client has asked something, not so long ago, that it had no answer to at a turn."""
    asked = (one for one in talk.asked[client] if one.asked.turn < turn and one.frame["method"] != "initialize")
    return any(not one.answers or one.answers[0].turn > turn for one in asked)


@rule("own-answers")
def a_server_gets_the_answer_to_its_question(plan: Plan, talk: Talk) -> Iterator[str]:
    """An answer to a question has the question's number in it, and comes from the client that the call is of."""
    for peer in talk.servers():
        for one in talk.asked[peer]:
            numbers = nonces_in(one.frame)
            owners = {owner for owner, _ in secrets_in(one.frame)}
            for event in [] if one.is_muddled else one.answers:
                guessed = event.frame.get("result", {}).get("guessed") if "result" in event.frame else None
                if guessed is not None and guessed in owners:
                    continue  # who was asked says something odd
                if numbers and "result" in event.frame and nonces_in(event.frame) != numbers:
                    yield f"{peer} asked {short(one.frame)} and heard {short(event.frame)}"
                if event.turn < one.asked.turn:
                    yield f"{peer} was answered before it asked: {short(event.frame)}"


@rule("own-rounds")
def an_answer_in_a_request_is_one_to_its_question(plan: Plan, talk: Talk) -> Iterator[str]:
    """What a server without a handshake is answered belongs to the call that brings it, and to the question it put."""
    for peer in talk.servers():
        for one in talk.got[peer]:
            if "inputResponses" not in one.params or one.frame["method"] == "tasks/update":
                continue  # what a task is answered, its server compares with what it asked
            mark = secrets_in(one.params.get("arguments") or {})
            for owner, number in secrets_in(one.params["inputResponses"]):
                if (owner, number) not in mark:
                    yield f"{peer} heard an answer for {owner} {number} in a call of {mark}: {short(one.frame)}"


@rule("ids")
def no_id_is_used_while_it_may_be_answered(plan: Plan, talk: Talk) -> Iterator[str]:
    """No id is used again at a peer that may still answer it."""
    for peer in talk.by_peer:
        if plan.uses_http and talk.record.revisions.get(peer) in (None, PER_REQUEST):
            continue  # each connection has ids of its own
        open_: dict[tuple[str, Any], Asked] = {}
        for one in talk.got[peer]:
            key = key_of(one.frame["id"])
            before = open_.get(key)
            if before is not None:
                answered = before.answers[0].there if before.answers else None
                if answered is None or answered > (one.asked.there or one.asked.turn):
                    yield f"{peer} heard the id {one.frame['id']!r} again, unanswered: {short(one.frame)}"
            open_[key] = one


@rule("valid")
def every_frame_is_valid_where_it_arrives(plan: Plan, talk: Talk) -> Iterator[str]:
    """Every frame is one of its receiver's revision."""
    for peer in [*talk.clients(), *talk.servers()]:
        revision = talk.record.revisions.get(peer)
        if revision is None:
            continue
        methods = {id(answer): one.frame["method"] for one in talk.asked[peer] for answer in one.answers}
        muddled = {id(answer) for one in talk.asked[peer] if one.is_muddled for answer in one.answers}
        for event in talk.by_peer[peer]:
            if (
                event.is_heard
                and not _is_opening(event.frame, methods.get(id(event)))
                and methods.get(id(event)) != "server/discover"  # of another era than the session after it, perhaps
                and not _is_odd(event)
                and id(event) not in muddled
            ):
                yield from _invalid(event, revision, methods.get(id(event)))


def _is_odd(event: Event) -> bool:
    """Whether it is an answer that a client has guessed the id of."""
    result = event.frame.get("result")
    return isinstance(result, dict) and "guessed" in result


def _is_opening(frame: Body, method: str | None) -> bool:
    return frame.get("method") in ("initialize", "server/discover") or (method is None and "method" not in frame)


def _invalid(event: Event, revision: str, method: str | None) -> Iterator[str]:
    if (event.frame.get("method") or method or "").startswith(_UNKNOWN):
        return
    try:
        dragoman_spec.validate(event.frame, revision, method)
    except dragoman_spec.errors.Error as error:
        yield f"{event.peer} speaks {revision} and heard {short(event.frame)}: {error}"


@rule("order")
def what_a_server_says_about_a_call_keeps_its_order(plan: Plan, talk: Talk) -> Iterator[str]:
    """A client hears what is said about a call in the order in which it was said, where all of it comes one way."""
    if plan.uses_http:
        return
    for peer in talk.clients():
        last: dict[tuple[str, str], int] = {}
        for event in talk.by_peer[peer]:
            if not event.is_heard or event.via.startswith("array"):
                continue  # answers of an array wait for each other
            for mark, number in numbered(event.frame):
                if number < last.get(mark, 0):
                    yield f"{peer} heard #{number} after #{last[mark]}: {short(event.frame)}"
                last[mark] = number


def numbered(frame: Body) -> Iterator[tuple[tuple[str, str], int]]:
    """Give the numbers that a server gave to what it said, with the secret and its run."""
    for word in json.dumps(frame).split("secret-")[1:]:
        mark, _, rest = word.partition(" #")
        number, _, run = rest.partition(" of ")
        if number.isdigit():
            yield (mark, run.partition('"')[0]), int(number)


@rule("once")
def a_call_reaches_a_server_once(plan: Plan, talk: Talk) -> Iterator[str]:
    """A call that a server has got is not made again, but for rounds that it asked for itself."""
    seen: dict[tuple[str, str, str], str] = {}
    for peer in talk.servers():
        for one in talk.got[peer]:
            if one.frame["method"] != "tools/call":
                continue
            for owner, number in secrets_in(one.params.get("arguments") or {})[:1]:
                mark = owner, number, str(one.params.get("requestState"))
                if mark in seen:
                    yield f"{peer} got the call {number} of {owner}, which {seen[mark]} had got: {short(one.frame)}"
                seen[mark] = peer


@rule("progress")
def progress_belongs_to_a_request_that_wants_it(plan: Plan, talk: Talk) -> Iterator[str]:
    """Progress names the token of a request that is not answered yet."""
    for peer in talk.clients():
        tokens: dict[tuple[str, Any], Asked] = {}
        for event in talk.by_peer[peer]:
            frame = event.frame
            if not isinstance(frame, dict):
                continue
            token = ((frame.get("params") or {}).get("_meta") or {}).get("progressToken")
            if event.is_said and token is not None:
                tokens[key_of(token)] = next(one for one in talk.asked[peer] if one.asked is event)
            if event.is_heard and frame.get("method") == "notifications/progress":
                one = tokens.get(key_of(frame["params"]["progressToken"]))
                if one is None:
                    yield f"{peer} heard progress of nothing: {short(frame)}"
                elif plan.scope != "client" and any(
                    a.turn < event.turn and not is_asking(a.frame) for a in one.answers
                ):
                    way = " over HTTP" if plan.uses_http else ""
                    yield f"{peer} heard progress{way} of what is answered: {short(frame)}"


@rule("handshake")
def sessions_open_in_order(plan: Plan, talk: Talk) -> Iterator[str]:
    """A server with a handshake hears `initialize` first, once, and nothing else before it has answered it."""
    for peer in talk.servers():
        if talk.record.revisions.get(peer) in (None, PER_REQUEST):
            continue
        opened = [one for one in talk.got[peer] if one.frame["method"] == "initialize"]
        if len(opened) != 1:
            yield f"{peer} heard initialize {len(opened)} times"
            continue
        answered = opened[0].answers[0].turn if opened[0].answers else None
        for one in talk.got[peer]:
            is_early = answered is None or one.asked.turn < answered
            if is_early and one is not opened[0] and one.frame["method"] not in ("ping", "server/discover"):
                yield f"{peer} heard {one.frame['method']} before it had answered initialize"


@rule("same")
def one_revision_passes_unchanged(plan: Plan, talk: Talk) -> Iterator[str]:
    """The differential rule: where both peers speak one revision, what they hear is what the other one said."""
    if plan.router or plan.hops > 1:
        return
    said = {
        (one.frame["method"], secrets_in(one.params)[0]): (peer, one)
        for peer in talk.servers()
        for one in talk.got[peer]
        if secrets_in(one.params) and one.answers and one.answers[0].there and "requestState" not in one.params
    }
    for peer in talk.clients():
        for one in talk.asked[peer]:
            marks = secrets_in(one.params)
            key = one.frame["method"], marks[0] if marks else None
            if key not in said or not one.answers or "requestState" in one.params:
                continue
            server, got = said[key]
            if (
                talk.record.revisions[peer] != talk.record.revisions.get(server)
                or client_of(plan, peer).manner == "odd"
            ):
                continue
            is_sealed = plan.front == "http" and talk.record.revisions[peer] == PER_REQUEST
            tasks = (_tasks(talk.asked[peer]), _tasks(talk.got[server])) if is_sealed else ({}, {})
            yield from _differs(peer, one, got, tasks)


def _tasks(requests: list[Asked]) -> dict[str, Any]:
    """Give the secrets of calls that have become tasks, by the ids of these, which a front without sessions seals."""
    begun = ((one, task_of(one.frame, answer.frame.get("result"))) for one in requests for answer in one.answers[:1])
    return {task["taskId"]: secrets_in(one.params) for one, task in begun if task is not None and "taskId" in task}


def _differs(peer: str, one: Asked, got: Asked, tasks: tuple[dict[str, Any], dict[str, Any]]) -> Iterator[str]:
    if _plain(one.params, tasks[0]) != _plain(got.params, tasks[1]):
        yield f"{peer} said {short(one.params)}, and the server heard {short(got.params)}"
    answer, heard = got.answers[0].frame, one.answers[0].frame
    if (got.answers[0].there or 0) > (one.answers[0].there or one.answers[0].turn):
        return  # it came when the request had been given up
    is_whole = ("result" in answer) != ("error" in answer) and not is_asking(answer)
    if is_whole and "result" in heard and answer.get("result") != heard.get("result"):
        yield f"the server said {short(answer)}, and {peer} heard {short(heard)}"
    if is_whole and "error" in answer and answer["error"] != heard.get("error"):
        yield f"the server said {short(answer)}, and {peer} heard {short(heard)}"


def _plain(params: Body, tasks: dict[str, Any]) -> Body:
    plain = {name: value for name, value in params.items() if name != "_meta"}
    named = plain.get("taskId")
    return {**plain, "taskId": tasks[named]} if isinstance(named, str) and named in tasks else plain


@rule("calm")
def without_trouble_every_call_succeeds(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where nothing goes wrong, what the server answers is what its client gets: no error of ours in between."""
    if not plan.is_calm or plan.options.get("request_timeout_s") is not None:
        return
    if plan.options.get("questions") in ("refuse", "replay", "task"):  # clients know no tasks
        return  # a question may be the end of any call that it may be about
    for peer in talk.clients():
        for one in talk.asked[peer]:
            marks = secrets_in(one.params)
            asks = [step for step in _script(one) if step[0] in ("ask", *ENDS_ALL)]
            if one.frame["method"] not in _ANSWERED:
                continue
            if not marks or asks or not one.answers or _answer_of(one) not in ("text", "structured", "failed", "twice"):
                continue
            heard = one.answers[0].frame
            if is_asking(heard) or "open_requests" in plan.options or "streams" in plan.front_options:
                continue
            if "result" not in heard or marks[0] not in secrets_in(heard):
                yield f"{peer} said {short(one.frame)}, and heard {short(heard)}"
