"""Made-up releases that change what requests and answers are made of."""

from __future__ import annotations

import copy
from typing import Any

from tests.codegen.releases.cases import Release, over, request, result, same
from tests.support.releases import NEXT, Schema

OLD = "2026-07-28"
ARGUMENT = {"name": "a", "value": ""}
TEMPLATE = {"type": "ref/resource", "uri": "a:b"}


def complete(revision: str, **ref: Any) -> dict[str, Any]:
    return request("completion/complete", revision, argument=ARGUMENT, ref=ref)


def tag_of_one_arm(defs: Schema) -> None:
    """What a value is stands in another field in one arm of a union than in the other."""
    shape = defs["PromptReference"]
    shape["properties"]["kind"] = shape["properties"].pop("type")
    shape["required"] = ["kind", "name"]


def params_without_metadata(defs: Schema) -> None:
    """The params of a request stand in it, and say nothing of metadata, which every request of the base must have."""
    params = copy.deepcopy(defs.pop("CompleteRequestParams"))
    del params["properties"]["_meta"]
    params["required"].remove("_meta")
    defs["CompleteRequest"]["properties"]["params"] = params


def response_without_result(defs: Schema) -> None:
    """The response of a request says nothing of its result."""
    shape = defs["ListToolsResultResponse"]
    del shape["properties"]["result"]
    shape["required"].remove("result")


def nothing_to_say(defs: Schema) -> None:
    """A method answers with the result of the base, by its own name in one release and by another in the next."""
    defs["CompleteResultResponse"]["properties"]["result"] = {"$ref": "#/$defs/EmptyResult"}
    defs["ListToolsResultResponse"]["properties"]["result"] = {"$ref": "#/$defs/Result"}


def nothing_more_to_say(defs: Schema) -> None:
    nothing_to_say(defs)
    defs["CompleteResultResponse"]["properties"]["result"] = {"$ref": "#/$defs/Result"}
    defs["ListToolsResultResponse"]["properties"]["result"] = {"$ref": "#/$defs/EmptyResult"}
    defs["Result"]["properties"]["cost"] = {"type": "number"}


def url_questions_say_more(defs: Schema) -> None:
    """What is a form by saying nothing stays as it is, beside something that does not."""
    defs["ElicitRequestURLParams"]["properties"]["cost"] = {"type": "number"}


def asks(**params: Any) -> dict[str, Any]:
    """A result that asks a person something before it is one."""
    question = {"method": "elicitation/create", "params": {"message": "?", **params}}
    answer = result(inputRequests={"a": question})
    return {**answer, "result": {**answer["result"], "resultType": "input_required"}}


FORM = {"requestedSchema": {"type": "object", "properties": {}}}
PAGE = {"mode": "url", "url": "https://example.com"}
BARE = complete(NEXT, **TEMPLATE)
del BARE["params"]["_meta"]
FILLED = complete(OLD, **TEMPLATE)
del FILLED["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]

REQUESTS = [
    Release("one arm of a union says elsewhere what it is", tag_of_one_arm,
            ["up renamed PromptReference.type"],
            [over(complete(NEXT, **TEMPLATE), complete(OLD, **TEMPLATE), "down"),
             over(complete(OLD, **TEMPLATE), complete(NEXT, **TEMPLATE)),
             over(complete(OLD, type="ref/prompt", name="p"), complete(NEXT, kind="ref/prompt", name="p")),
             over(complete(NEXT, kind="ref/prompt", name="p"), complete(OLD, type="ref/prompt", name="p"), "down")]),
    Release("a form that does not say that it is one, beside what changes", url_questions_say_more, [],
            [same(asks(**FORM), "down", "tools/call"), same(asks(**FORM, mode="form"), "down", "tools/call"),
             over(asks(**PAGE, cost=0.5), asks(**PAGE), "down", "tools/call")]),
    Release("params that say nothing of metadata", params_without_metadata,
            ["down required CompleteRequest.params._meta.io.modelcontextprotocol/clientCapabilities"],
            [over(BARE, FILLED, "down")]),
    Release("the response of a request has no result", response_without_result,
            [f"down required ListToolsResultResponse.result.{name}"
             for name in ("cacheScope", "resultType", "tools", "ttlMs")],
            [same(result(tools=[], ttlMs=0, cacheScope="private"))]),
]  # fmt: skip
