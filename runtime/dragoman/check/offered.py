"""What a server lists: names, schemas, URIs, types.

Lives here: judging items of lists by what no schema of the protocol says. Must not: ask for anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from dragoman.check.json_schemas import find_defects, is_template
from dragoman.check.lists import ListedItem
from dragoman.check.talk import Talk
from dragoman.core.exact_json import escape
from dragoman.core.rules.annotations import find_mirrored

_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*\Z")
_MIME_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+\s*(;.*)?\Z", re.DOTALL)


def judge_item(talk: Talk, member: str, item: ListedItem) -> None:
    """Judge something that is listed.

    Args:
        talk: In which it was.
        member: Of the result that lists it.
        item: It.
    """
    for judge in _JUDGES.get(member, ()):
        judge(talk, item)


def _judge_tool(talk: Talk, item: ListedItem) -> None:
    tool = item.value
    name = tool.get("name")
    if isinstance(name, str) and not _TOOL_NAME.match(name):
        _note(talk, "tool-name", item, "/name", "1 to 128 of A-Z, a-z, 0-9, _, -, .", repr(name[:140]))
    for member, rule in (("inputSchema", "input-schema"), ("outputSchema", "output-schema")):
        if isinstance(tool.get(member), dict):
            for defect in find_defects(tool[member]):
                _note(talk, rule, item, f"/{member}{defect.pointer}", defect.expected, defect.found)
    hints = tool.get("annotations")
    if isinstance(hints, dict) and hints.get("readOnlyHint") is True and hints.get("destructiveHint") is True:
        _note(talk, "tool-hints", item, "/annotations/destructiveHint", "not true beside readOnlyHint", "true")
    if "argument" in talk.facts.headers:
        try:
            find_mirrored(tool.get("inputSchema"))
        except ValueError as error:
            _note(talk, "mirrored-arguments", item, "/inputSchema", "headers that can be sent", str(error))


def _judge_uri(talk: Talk, item: ListedItem) -> None:
    uri = item.value.get("uri")
    if isinstance(uri, str) and not _ABSOLUTE.match(uri):
        _note(talk, "uri", item, "/uri", "a scheme, such as file:, and no white space", repr(uri[:80]))


def _judge_template(talk: Talk, item: ListedItem) -> None:
    template = item.value.get("uriTemplate")
    if isinstance(template, str) and not is_template(template):
        _note(talk, "uri-template", item, "/uriTemplate", "expressions between { and }", repr(template[:80]))


def _judge_mime_type(talk: Talk, item: ListedItem) -> None:
    kind = item.value.get("mimeType")
    if isinstance(kind, str) and not _MIME_TYPE.match(kind):
        _note(talk, "mime-type", item, "/mimeType", "type/subtype", repr(kind[:80]))


def _judge_prompt(talk: Talk, item: ListedItem) -> None:
    arguments = item.value.get("arguments")
    seen: set[str] = set()
    for index, argument in enumerate(arguments if isinstance(arguments, list) else []):
        name = argument.get("name") if isinstance(argument, dict) else None
        if isinstance(name, str) and name in seen:
            _note(talk, "argument-unique", item, f"/arguments/{index}/name", "another name", f"{escape(name)!r} again")
        elif isinstance(name, str):
            seen.add(name)


_JUDGES: Final[Mapping[str, tuple[Callable[[Talk, ListedItem], None], ...]]] = MappingProxyType(
    {
        "tools": (_judge_tool,),
        "resources": (_judge_uri, _judge_mime_type),
        "resourceTemplates": (_judge_template, _judge_mime_type),
        "prompts": (_judge_prompt,),
    }
)


def _note(talk: Talk, rule: str, item: ListedItem, below: str, expected: str, found: str) -> None:
    if not talk.findings.is_told("result-model", item.about, item.pointer + below):
        talk.findings.note(rule, item.about, expected, found, pointer=item.pointer + below)
