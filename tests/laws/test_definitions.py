"""The laws for typed models: every definition and every named part of one, converted by `dragoman_spec.convert`."""

from __future__ import annotations

import random
import warnings
from functools import cache
from typing import Any

import pytest

import dragoman_spec
from dragoman_spec import (
    Loss,
    LossyConversion,
    MethodNeeded,
    MissingRequiredField,
    TranslationError,
    Untranslatable,
    adapter,
    convert,
    era,
    load,
    translate,
    validate,
)
from dragoman_spec._base import Model
from tests.support.instances import random_instance, read_schema
from tests.support.judge import canonical, is_valid, same
from tests.support.profile import rounds
from tests.support.renames import definition_in, method_in
from tests.support.strictness import KEPT_ON_PURPOSE, strict_validator
from tests.support.subjects import PAIRS, REVISIONS

SEEDS = rounds(default=3, thorough=100)
COMPLETE = {revision: {"resultType": "complete"} for revision in REVISIONS if era(revision) == "per_request"}


@cache
def models(revision: str) -> dict[str, type[Model]]:
    """The models of a revision, by the name of their definition or part."""
    module = load(revision)
    found = {name: getattr(module, name, None) for name in read_schema(revision).definitions}
    return {name: kind for name, kind in found.items() if isinstance(kind, type) and issubclass(kind, Model)}


@cache
def unions(revision: str) -> dict[str, Any]:
    """What is a type alias and not a model: `JSONRPCResponse`, where there are a result and an error of their own."""
    module = load(revision)
    found = {name: getattr(module, name, None) for name in read_schema(revision).definitions}
    return {name: kind for name, kind in found.items() if kind is not None and not isinstance(kind, type)}


def counterpart(name: str, source: str, target: str) -> str | None:
    """The name of the definition or part in another revision: of a model, or of a union that has one there."""
    found = {**models(target), **unions(target)}
    return next((other for other in (definition_in(source, target, name), name) if other in found), None)


def lacks_its_surroundings(error: TranslationError, name: str) -> bool:
    """Whether a frame lacks what only its envelope could tell in the target."""
    no_id = error.pointer == "/id" or (isinstance(error, MissingRequiredField) and error.field == "id")
    return no_id and name.endswith("Request")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_converted_models_are_valid_and_exact(source: str, target: str) -> None:
    for name, kind in models(source).items():
        for seed in range(SEEDS):
            value = random_instance(random.Random(f"{source}{name}{seed}"), source, name)
            check(kind.model_validate(value), name, value, source, target, ("strict", "minimal")[seed % 2])


def check(model: Model, name: str, value: Any, source: str, target: str, profile: str) -> None:
    there = counterpart(name, source, target)
    try:
        converted = convert(model, to=target, profile=profile, losses=[])
    except Untranslatable:
        return
    except MethodNeeded:
        # Of a whole response nothing can be said; with its method it is converted, as the test after the next shows.
        assert name == load(source).ENVELOPES["result"]
        return
    except TranslationError as error:
        if not lacks_its_surroundings(error, name):
            raise
        return
    assert same(model.model_dump(), value)
    assert there is not None
    assert there in unions(target) or type(converted).__name__ == there
    dump = adapter(target, there).dump_python(converted)
    if there in canonical(target)["$defs"]:
        assert is_valid(dump, target, there), (name, value, dump)
        assert profile == "minimal" or strict_validator(source, target, there).is_valid(dump), (name, value, dump)
    elif profile == "strict":
        only_ours = _properties(source, name) - _properties(target, there) - {key for _, key in KEPT_ON_PURPOSE}
        assert not only_ours & dump.keys(), (name, value, dump)


def _properties(revision: str, name: str) -> set[str]:
    properties = read_schema(revision).definitions[name].get("properties", {})
    return {key for key in properties if key != "_meta"}


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_models_without_counterpart_are_refused(source: str, target: str) -> None:
    for name, kind in models(source).items():
        if counterpart(name, source, target) is None:
            model = kind.model_validate(random_instance(random.Random(name), source, name))
            with pytest.raises((TranslationError, MethodNeeded)):
                convert(model, to=target, losses=[])


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_whole_response_is_converted_as_its_method_says(source: str, target: str) -> None:
    ours, theirs = (load(revision).ENVELOPES["result"] for revision in (source, target))
    requests = [method for method in load(source).METHODS.values() if method.kind == "request"]
    for seed in range(SEEDS * len(requests)):
        method = requests[seed % len(requests)]
        assert method.result is not None
        result = random_instance(random.Random(f"{source}{seed}"), source, method.result)
        frame = {"jsonrpc": "2.0", "id": 1, "result": {**result, **COMPLETE.get(source, {})}}
        response = getattr(load(source), ours).model_validate(frame)
        try:
            expected = translate(frame, source=source, target=target, method=method.name)
        except Untranslatable:
            with pytest.raises(Untranslatable):
                convert(response, to=target, method=method.name, losses=[])
            continue
        losses: list[Loss] = []
        converted = convert(response, to=target, method=method.name, losses=losses)
        assert (type(converted).__name__, losses) == (theirs, list(expected.losses))
        assert same(converted.model_dump(), expected.frame)
        validate(converted.model_dump(), target, method_in(source, target, method.name))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_whole_response_needs_its_method(source: str, target: str) -> None:
    response = {"jsonrpc": "2.0", "id": 1, "result": COMPLETE.get(source, {})}
    with pytest.raises(MethodNeeded) as caught:
        convert(getattr(load(source), load(source).ENVELOPES["result"]).model_validate(response), to=target)
    assert caught.value.revision == target


def test_whole_request_is_converted_as_its_method_says() -> None:
    params = {"name": "t", "arguments": {}, "task": {"ttl": 5}}
    losses: list[Loss] = []
    frame = dragoman_spec.v2025_11_25.JSONRPCRequest(id=1, method="tools/call", params=params)
    converted = convert(frame, to="2025-06-18", losses=losses)
    assert converted.model_dump()["params"] == {"name": "t", "arguments": {}}
    assert losses == [Loss("/params/task", "dropped", {"ttl": 5})]


def test_whole_error_is_converted_without_a_method() -> None:
    frame = dragoman_spec.v2025_11_25.JSONRPCErrorResponse.model_validate(
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "It broke."}}
    )
    converted = convert(frame, to="2025-06-18")
    assert (type(converted).__name__, converted.model_dump()) == ("JSONRPCError", frame.model_dump())


@pytest.mark.parametrize("revision", REVISIONS)
def test_equal_revisions_give_the_same_model(revision: str) -> None:
    tool = load(revision).Tool(name="add", input_schema={"type": "object"})
    assert convert(tool, to=revision) is tool


def test_losses_are_handed_over() -> None:
    tool = dragoman_spec.v2025_06_18.Tool(name="add", input_schema={"type": "object"}, output_schema={"type": "object"})
    losses: list[Loss] = []
    assert convert(tool, to="2024-11-05", losses=losses).model_dump() == {
        "name": "add",
        "inputSchema": {"type": "object"},
    }
    assert losses == [Loss("/outputSchema", "dropped", {"type": "object"})]


def test_losses_nobody_asked_for_are_warned_of() -> None:
    tool = dragoman_spec.v2025_06_18.Tool(name="add", input_schema={"type": "object"}, output_schema={"type": "object"})
    with pytest.warns(LossyConversion, match=r"/outputSchema dropped") as caught:
        convert(tool, to="2024-11-05")
    assert caught[0].filename == __file__


def test_nothing_lost_is_not_warned_of() -> None:
    tool = dragoman_spec.v2024_11_05.Tool(name="add", input_schema={"type": "object"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert convert(tool, to="2025-11-25").name == "add"


def test_params_are_converted_like_those_of_their_request() -> None:
    params = dragoman_spec.v2025_11_25.CallToolRequestParams(name="add", task={"ttl": 5})
    losses: list[Loss] = []
    converted = convert(params, to="2024-11-05", losses=losses)
    assert converted.model_dump() == {"name": "add"}
    assert losses == [Loss("/task", "dropped", {"ttl": 5})]


def test_a_model_without_counterpart_is_named() -> None:
    task = dragoman_spec.v2025_11_25.RelatedTaskMetadata(task_id="1")
    with pytest.raises(Untranslatable, match="2024-11-05 has no RelatedTaskMetadata"):
        convert(task, to="2024-11-05")


def test_star_import_leaves_convert_a_function() -> None:
    """The module behind it once had its name, and loading that hid the function."""

    assert callable(dragoman_spec.convert)
