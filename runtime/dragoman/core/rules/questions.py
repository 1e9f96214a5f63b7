"""A server's questions and their answers, across the eras: requests of their own there, parts of a result here.

Lives here: one question or answer at a time, each way. Must not: decide whether a question may be asked, or keep one
that waits (`inputs`, `core.switch.to_session`). Called by both.

The steps do the translating. A question is converted as the definition that it is across the eras, where one side has
it as a frame and the other does not; within the era with a handshake it is a frame like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import dragoman_spec
from dragoman.core.methods import ELICITATION, ROOTS
from dragoman.core.rules.forms import find_misfit
from dragoman.core.rules.names import FACTS, NEWER, OLDER, OLDER_FACTS
from dragoman.core.unchecked import find_object
from dragoman_spec import Loss, MissingRequiredField, TranslationError, ValidationFailed, translate, translator

SAMPLING: Final = "sampling/createMessage"

_METHODS: Final = dragoman_spec.load(NEWER).INPUT_METHODS
_SAYS_NOTHING: Final = frozenset({*OLDER_FACTS.request_meta.values(), *OLDER_FACTS.result_meta.values()})
"""Keys of `_meta` that serve the request itself, which is not one any more."""

_SAYS_ALL: Final = {ELICITATION: "action", SAMPLING: "content", ROOTS: "roots"}
"""The member that an answer must have."""


class Question(NamedTuple):
    """A question in the form of the peer that it goes to, without an id."""

    method: str
    params: dict[str, Any] | None
    losses: tuple[Loss, ...] = ()


class Reply(NamedTuple):
    """A result in the form of the peer that it goes to."""

    result: dict[str, Any]
    losses: tuple[Loss, ...] = ()


def is_question(method: object) -> bool:
    """Whether a server of the per-request era may ask this inside of a result."""
    return isinstance(method, str) and method in FACTS.asked


def unembed(embedded: Mapping[str, Any], revision: str) -> Question:
    """Make a question inside of a result the request that a client with a handshake gets.

    Args:
        embedded: `method` and `params`, in the form of 2026-07-28.
        revision: Of the client.

    Raises:
        TranslationError: The client's revision cannot be asked that.
    """
    members = {name: embedded[name] for name in ("method", "params") if name in embedded}
    frame, crossing = _cross(_METHODS[embedded["method"]].frame, {"jsonrpc": "2.0", "id": 0, **members}, NEWER, OLDER)
    translation = translate(frame, source=OLDER, target=revision)
    assert translation.frame is not None
    return Question(translation.frame["method"], translation.frame.get("params"), (*crossing, *translation.losses))


def embed_answer(method: str, result: Mapping[str, Any], revision: str) -> Reply:
    """Make a client's result the answer that stands in `inputResponses`.

    Args:
        method: That was asked.
        result: Of a client with a handshake.
        revision: Of that client.

    Raises:
        TranslationError: The result is not one of that method.
    """
    _check_answer(method, result, "/result")
    frame = {"jsonrpc": "2.0", "id": 0, "result": _without_plumbing(result)}
    translation = translate(frame, source=revision, target=OLDER, method=method)
    assert translation.frame is not None
    _validate(translation.frame, method)
    answer, crossing = _cross(_result_of(method), translation.frame["result"], OLDER, NEWER)
    return Reply(answer, (*translation.losses, *crossing))


def embed(method: str, params: Mapping[str, Any] | None, revision: str) -> Question:
    """Make the request of a server with a handshake a question that stands in `inputRequests`.

    Args:
        method: That it asks; `is_question` is true of it.
        params: Of its request.
        revision: Of the server.

    Raises:
        TranslationError: The request is not one of its revision.
    """
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": 0, "method": method}
    if params is not None:
        if not isinstance(params, dict):
            raise TranslationError("/params", "an object", type(params).__name__, method=method)
        frame["params"] = _without_plumbing(params)
    translation = translate(frame, source=revision, target=OLDER)
    assert translation.frame is not None
    embedded, crossing = _cross(_METHODS[method].frame, translation.frame, OLDER, NEWER)
    losses = (*translation.losses, *(loss for loss in crossing if loss.pointer != "/id"))
    return Question(method, embedded.get("params"), losses)


def unembed_answer(question: Question, answer: Mapping[str, Any], revision: str) -> Reply:
    """Make an answer in `inputResponses` the result that a server with a handshake waits for.

    Args:
        question: As the client got it.
        answer: Of the client.
        revision: Of the server.

    Raises:
        TranslationError: The answer is not one to that question.
    """
    method = question.method
    _check_answer(method, answer, "")
    result, crossing = _cross(_result_of(method), answer, NEWER, OLDER)
    frame = {"jsonrpc": "2.0", "id": 0, "result": result}
    _validate(frame, method)
    translation = translate(frame, source=OLDER, target=revision, method=method)
    assert translation.frame is not None
    told = translation.frame["result"]
    if told.get("action") == "accept" and question.params is not None:
        misfit = find_misfit(told.get("content") or {}, question.params.get("requestedSchema"))
        if misfit is not None:
            raise TranslationError(f"/content/{misfit}", "what the form asks for", "something else", method=method)
    return Reply(told, (*crossing, *translation.losses))


def _validate(frame: dict[str, Any], method: str) -> None:
    """Refuse a result that is not one of the newest revision with a handshake: its reader would have to guess."""
    try:
        # The first one loads pydantic, which takes a tenth of a second; a person or a model has just taken longer.
        dragoman_spec.validate(frame, OLDER, method, allow_null=True)
    except ValidationFailed as error:
        raise TranslationError(error.pointer, error.expected, error.found, method=method) from None


def describe(embedded: Mapping[str, Any]) -> str:
    """Return a question as text, for somebody who cannot be asked it: with the URL, if there is one to go to."""
    params = find_object(embedded, "params")
    said = params.get("message") or params.get("systemPrompt")
    words = {
        ELICITATION: "asks for input",
        SAMPLING: "asks for a completion by the client's model",
        ROOTS: "asks for roots",
    }
    text = f"The server {words.get(str(embedded.get('method')), 'asks something')}"
    text += f": {str(said)[:1000]}" if said else ""
    return f"{text} ({str(params['url'])[:2000]})" if params.get("url") else text


def _cross(definition: str, value: Any, source: str, target: str) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """Convert between the two neighbours; the losses of a result point into it as into a frame."""
    _, converted, losses = translator(source, target).definition(definition, value)
    if "jsonrpc" in value:
        return converted, losses
    return converted, tuple(Loss("/result" + loss.pointer, loss.kind, loss.value, loss.cosmetic) for loss in losses)


def _result_of(method: str) -> str:
    return _METHODS[method].result or ""


def _check_answer(method: str, answer: object, pointer: str) -> None:
    if not isinstance(answer, dict):
        raise TranslationError(pointer, "an object", type(answer).__name__, method=method)
    if _SAYS_ALL[method] not in answer:
        raise MissingRequiredField(pointer, _SAYS_ALL[method], method=method)


def _without_plumbing(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave off what of `_meta` served the request: that it goes is no loss."""
    meta = holder.get("_meta")
    if not isinstance(meta, dict):
        return holder
    left = {key: value for key, value in meta.items() if key not in _SAYS_NOTHING}
    rest = {name: value for name, value in holder.items() if name != "_meta"}
    return {**rest, "_meta": left} if left else rest
