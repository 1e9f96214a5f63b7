"""A per-request server wants input of a client with a handshake, which is asked by requests: as routines.

Lives here: whether a result wants input, the rounds of a call, waiting for a task, and asking the client, which both
do. Must not: send or wait: whoever steps them does.

Theory of operation. A result that wants input ends the request; the questions in it are posed to the client while its
own request is still open; their answers go back with the same request under a new id, and with them, unread, the state
that the server gave (2026-07-28/basic/patterns/mrtr). A round without questions only waits (`core.rounds`). A task is
asked for again and again, as often as it advises. What its server wants to know stands in it until it is answered: so
each key is asked once ("clients SHOULD deduplicate `inputRequests` keys across consecutive polls", SEP-2663). A
question that the client cannot be asked ends the call with a readable reason: as the failed result of a tool, which a
model sees, else as an error.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.declared import find_missing, read_declared
from dragoman.core.methods import CALL_TOOL, ELICITATION, ROOTS, TASK_STATUS
from dragoman.core.rounds import Rounds
from dragoman.core.rules.names import FACTS
from dragoman.core.rules.questions import Question, Reply, describe, embed_answer, unembed
from dragoman.core.rules.routines import Ask, Done, Pause, Pose, Routine, Tell
from dragoman.core.rules.tasks import relate, to_older_task
from dragoman.errors import ProtocolError, RemoteProtocolError, TranslationError, Untranslatable
from dragoman_spec import Loss, facts
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.bridge")

DEFAULT_POLL_S: Final = 1.0
SHORTEST_POLL_S: Final = 0.1
LONGEST_POLL_S: Final = 60.0

_OF_RETRIES: Final = ("inputResponses", "requestState")


@record
class AskedClient:
    """The client, as far as questions go.

    Attributes:
        capabilities: As it declared them in `initialize`.
        roots: Its roots, if they are known and have not changed; they are not asked for again then.
    """

    revision: str
    capabilities: Mapping[str, Any]
    roots: Sequence[Any] | None = None

    @property
    def takes_several(self) -> bool:
        """Whether it is asked several questions at once: clients from before elicitation are known not to cope."""
        return ELICITATION in facts(self.revision).asked


class UnanswerableError(Exception):
    """Something cannot be answered; why, for a model or a person."""


def wants_input(result: Mapping[str, Any], method: str) -> bool:
    """Whether a result wants input first; for a request that takes no task for an answer.

    What is unknown must not reach a client with a handshake, which would read it as an empty success: "clients MUST
    treat an absent `resultType` as `complete`", and "a `resultType` of any value unrecognized by the client MUST be
    considered invalid" (2026-07-28/basic/index, ResultType).

    Args:
        result: Of a server of the per-request era, in its raw form.
        method: That was asked.

    Raises:
        RemoteProtocolError: It is of a type that the answer to this request cannot be (-32603).
    """
    kind = result.get("resultType", "complete")
    if kind == "complete":
        return False
    if kind != "input_required" or method not in FACTS.input_required:
        raise _invalid(method, f"with a result of type {str(kind)[:40]!r}, which this request cannot have")
    requests, state = result.get("inputRequests"), result.get("requestState")
    if requests is None and state is None:
        raise _invalid(method, "that it needs input, but neither with questions nor with a state")
    if not isinstance(requests, dict | None) or not isinstance(state, str | None):
        raise _invalid(method, "that it needs input, but its questions or its state are malformed")
    for key, asked in (requests or {}).items():
        if not _is_well_formed(asked):
            raise _invalid(method, f"that it needs input, but {key[:40]!r} is not a question that a server may ask")
    return True


def run_rounds(method: str, params: Mapping[str, Any], client: AskedClient, result: Mapping[str, Any]) -> Routine:
    """Go on with a call until its result is complete.

    Args:
        method: Of the client's request.
        params: As they went to the server the first time.
        client: Who is asked.
        result: The server's first.
    """
    rounds, visited = Rounds(), dict[str, None]()
    kept = {name: value for name, value in params.items() if name not in _OF_RETRIES}
    try:
        while wants_input(result, method):
            requests = result.get("inputRequests") or {}
            pause_s = rounds.note(bool(requests))
            if pause_s is None:
                raise UnanswerableError(f"The server asked for input {rounds.count} times without coming to an end.")
            responses, losses = yield from ask_client(client, requests, visited)
            again = {**kept, "inputResponses": responses} if responses else dict(kept)
            if result.get("requestState") is not None:
                again["requestState"] = result["requestState"]
            if pause_s:
                yield Pause(pause_s)
            result = yield Ask(method, again, losses)
    except UnanswerableError as error:
        if method != CALL_TOOL:  # a model reads why a tool failed, a program reads an error
            raise ProtocolError(INTERNAL_ERROR, str(error), {"method": method}) from None
        result = failed_tool(str(error))
    return Done(result, tuple(visited))


def wait_for_task(task_id: str, client: AskedClient) -> Routine:
    """Wait until a task has ended, and give its result; its client hears of each change of the state meanwhile."""
    seen, visited, told = set[str](), dict[str, None](), None
    while True:
        task: Mapping[str, Any] = yield Ask("tasks/get", {"taskId": task_id})
        state = task.get("status"), task.get("statusMessage")
        if told is not None and state != told:
            yield Tell(TASK_STATUS, to_older_task({**task, "taskId": task_id}))
        told = state
        requests: Any = {}
        match task.get("status"):
            case "completed" if isinstance(task.get("result"), dict):
                return Done(task["result"], tuple(visited))
            case "failed" if isinstance(task.get("error"), dict):
                raise _read_error(task["error"])
            case "cancelled":
                raise ProtocolError(INTERNAL_ERROR, "the task was cancelled", {"taskId": task_id})
            case "input_required":
                requests = task.get("inputRequests")
                if not isinstance(requests, dict) or not all(_is_well_formed(asked) for asked in requests.values()):
                    message = "the server answered tasks/get with questions that are malformed"
                    raise ProtocolError(INTERNAL_ERROR, message, {"taskId": task_id})
            case status if status != "working":
                named = f"the state {str(status)[:40]!r} and without what belongs to it"
                message = f"the server answered tasks/get with {named}"
                raise ProtocolError(INTERNAL_ERROR, message, {"taskId": task_id})
        new = {key: asked for key, asked in requests.items() if key not in seen}
        if not new:
            yield Pause(_read_poll_s(task))
            continue
        seen |= new.keys()
        try:
            responses, losses = yield from ask_client(client, new, visited, task_id)
        except UnanswerableError as error:  # nothing would come of the task
            yield Ask("tasks/cancel", {"taskId": task_id}, is_awaited=False)
            return Done(failed_tool(str(error)))
        yield Ask("tasks/update", {"taskId": task_id, "inputResponses": responses}, losses)


def ask_client(
    client: AskedClient, requests: Mapping[str, Any], visited: dict[str, None], task_id: str | None = None
) -> Generator[Pose, tuple[str, Mapping[str, Any]], tuple[dict[str, Any], tuple[Loss, ...]]]:
    """Ask the client everything of one round.

    Args:
        client: Who is asked.
        requests: `inputRequests` of the server, each of them well formed.
        visited: Gets the names of the elicitations by URL that were accepted: the client is to hear when that is done.
        task_id: The task that it is about, if it is about one.

    Returns:
        `inputResponses`, and what they cannot carry.

    Raises:
        UnanswerableError: One of them cannot be asked, or has no answer.
    """
    responses: dict[str, Any] = {}
    unasked: dict[str, Question] = {}
    losses: list[Loss] = []
    for key, embedded in requests.items():
        if embedded["method"] == ROOTS and client.roots is not None:
            responses[key] = {"roots": list(client.roots)}
        else:
            unasked[key] = _read_question(embedded, client, task_id)
    while unasked:
        keys = list(unasked) if client.takes_several else [next(iter(unasked))]
        waiting = {key: unasked.pop(key) for key in keys}
        pose = Pose(dict(waiting))
        while waiting:
            key, body = yield pose
            pose = Pose({})
            if key not in waiting:
                continue
            question = waiting.pop(key)
            answer = _read_answer(question, body, client)
            responses[key] = answer.result
            losses += answer.losses
            elicitation = (question.params or {}).get("elicitationId")
            if isinstance(elicitation, str) and answer.result.get("action") == "accept":
                visited[elicitation] = None
    return responses, tuple(losses)


def failed_tool(reason: str) -> dict[str, Any]:
    """Return the result of a tool that failed for this reason."""
    return {"resultType": "complete", "content": [{"type": "text", "text": reason}], "isError": True}


def _read_question(embedded: Mapping[str, Any], client: AskedClient, task_id: str | None) -> Question:
    declared = read_declared(client.capabilities)
    missing = find_missing(embedded["method"], embedded.get("params") or {}, declared)
    try:
        question = unembed(embedded, client.revision) if missing is None else None
        reason = f"the client did not declare the capability {missing}."
    except TranslationError as error:
        question, reason = None, error.reason if isinstance(error, Untranslatable) else str(error)
    if question is None:
        raise UnanswerableError(f"{describe(embedded)}. It cannot be asked: {reason}")
    return question if task_id is None else question._replace(params=relate(question.params, task_id))


def _read_answer(question: Question, body: Mapping[str, Any], client: AskedClient) -> Reply:
    method = question.method
    if "error" in body:
        error = body["error"]
        said = f"{str(error.get('message'))[:1000]} ({str(error.get('code'))[:40]})"
        raise UnanswerableError(f"The client did not answer {method}: {said}")
    try:
        return embed_answer(method, body["result"], client.revision)
    except TranslationError as failure:
        if method == ELICITATION:  # as if its user had closed the form: the server says what becomes of the call
            logger.warning("the client's answer to %s is taken for none: %s", method, failure)
            return Reply({"action": "cancel"})
        raise UnanswerableError(f"The client's answer to {method} cannot be passed on: {failure}") from None


def _is_well_formed(asked: object) -> bool:
    if not isinstance(asked, dict) or not isinstance(method := asked.get("method"), str):
        return False
    return method in FACTS.asked and isinstance(asked.get("params"), dict | None)


def _invalid(method: str, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(INTERNAL_ERROR, f"the server answered {method} {what}", {"method": method})


def _read_error(error: Mapping[str, Any]) -> ProtocolError:
    code = error.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        code = INTERNAL_ERROR
    return ProtocolError(code, str(error.get("message", "")), error.get("data"))


def _read_poll_s(task: Mapping[str, Any]) -> float:
    advised = task.get("pollIntervalMs")
    if isinstance(advised, bool) or not isinstance(advised, int | float):
        return DEFAULT_POLL_S
    return min(max(advised / 1000, SHORTEST_POLL_S), LONGEST_POLL_S)
