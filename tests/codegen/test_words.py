"""Words: found for the nearest place and revision, none missing for what is pinned, none taken from upstream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codegen.errors import UnusedDecision
from codegen.normalise import Normalised, normalise, read_normalised
from codegen.pins import check_pins
from codegen.words import NO_WORDS, Words, check_words, missing_words, read_words, words_of_fields
from tests.support.judge import UPSTREAM

ROOT = Path(__file__).resolve().parents[2]
STRING = {"type": "string"}


@cache
def _pinned() -> tuple[Normalised, ...]:
    return tuple(read_normalised(ROOT, revision) for revision in check_pins(ROOT / "schema"))


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _schema(revision: str = "2020-01-01") -> Normalised:
    params = {"$ref": "#/$defs/PokeRequestParams"}
    request = _object(method={"const": "poke", "type": "string"}, params=params)
    definitions = {
        "PokeRequest": request,
        "PokeRequestParams": _object(hard=STRING),
        "Poked": _object(hard=STRING),
        "PokedResponse": _object(result={"$ref": "#/$defs/Poked"}),
        "PokedNotification": _object(method={"const": "poked", "type": "string"}),
    }
    return normalise(revision, {"$defs": definitions})


WORDS = Words(
    definitions={"Poked": {"is": "A poke.", "hard": "How hard it was.", "2022-01-01": {"hard": "How hard."}}},
    fields={"hard": "How hard to poke.", "2021-01-01": {"hard": "Whether to poke hard."}},
    methods={"poke": "Pokes.", "poked": "Says that somebody poked."},
    order={},
)


@pytest.mark.parametrize(
    ("definition", "revision", "said"),
    [
        ("Poked", "2020-01-01", "How hard it was."),
        ("Poked", "2023-01-01", "How hard."),
        ("PokeRequestParams", "2020-01-01", "How hard to poke."),
        ("PokeRequestParams", "2021-01-01", "Whether to poke hard."),
    ],
)
def test_definitions_own_words_come_first_and_newer_ones_from_their_revision_on(
    definition: str, revision: str, said: str
) -> None:
    assert WORDS.field(definition, "hard", revision) == said


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ("Poked", "A poke."),
        ("PokeRequest", "The request `poke`. Pokes."),
        ("PokeRequestParams", "The params of `poke`. Pokes."),
        ("PokedNotification", "The notification `poked`. Says that somebody poked."),
        ("PokedResponse", "The response that carries a `Poked`, with the id of the request."),
    ],
)
def test_frames_get_the_words_of_their_method(definition: str, said: str) -> None:
    assert WORDS.definition(definition, _schema()) == said


def test_what_has_no_words_is_listed() -> None:
    assert missing_words(WORDS, [_schema()]) == [
        "2020-01-01 PokeRequest.method",
        "2020-01-01 PokeRequest.params",
        "2020-01-01 PokedNotification.method",
        "2020-01-01 PokedResponse.result",
    ]


def test_method_without_words_is_listed_with_its_frame() -> None:
    found = missing_words(NO_WORDS, [_schema()])
    assert {"2020-01-01 poke", "2020-01-01 PokeRequest", "2020-01-01 PokeRequestParams"} <= set(found)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (Words({"Gone": {"is": "x"}}, {}, {}, {}), "definition Gone.is"),
        (Words({"Poked": {"soft": "x"}}, {}, {}, {}), "definition Poked.soft"),
        (Words({"Poked": {"2021-01-01": {"soft": "x"}}}, {}, {}, {}), "definition Poked.soft"),
        (Words({}, {"soft": "x"}, {}, {}), "field soft"),
        (Words({}, {}, {"prod": "x"}, {}), "method prod"),
        (Words({}, {}, {}, {"Poked": ["soft"]}), "order Poked.soft"),
        (Words({}, {}, {}, {"Gone": ["hard"]}), "order Gone.hard"),
    ],
)
def test_words_for_what_is_not_there_are_an_error(words: Words, place: str) -> None:
    with pytest.raises(UnusedDecision, match=re.escape(place)):
        check_words(words, [_schema()])


def test_fields_not_in_the_order_come_last() -> None:
    words = Words({}, {}, {}, {"A": ["c", "b"]})
    assert words.arrange("A", ["a", "b", "c", "d"], ["d"]) == ["d", "c", "b", "a"]


def test_everything_pinned_has_words() -> None:
    assert missing_words(read_words(), _pinned()) == []


def test_order_of_everything_pinned_is_known() -> None:
    order = read_words().order
    unknown = [
        (schema.revision, name, field)
        for schema in _pinned()
        for name, node in schema.definitions.items()
        if len(node.get("properties", {})) > 1 and name != "ClientNotification"
        for field in node["properties"]
        if field not in order.get(name, ())
    ]
    assert unknown == []


def test_words_are_sentences() -> None:
    assert [said for said in _all_words() if not said[0].isupper() or said[-1] != "."] == []


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="upstream's files are not part of this repository")
def test_no_sentence_is_upstreams() -> None:
    # Seven words in a row: shorter phrases, such as "the name of the tool", are nobody's.
    prose = " ".join(" ".join(_plain(text)) for path in UPSTREAM.glob("*/schema.json") for text in _descriptions(path))
    runs = {
        " ".join(words[start : start + 7])
        for said in _all_words()
        for words in [_plain(said)]
        for start in range(len(words) - 6)
    }
    assert [run for run in sorted(runs) if run in prose] == []


def _all_words() -> Iterator[str]:
    words = read_words()
    todo: list[Any] = [words.definitions, words.fields, words.methods]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value if value[0] != "`" else f"A{value}"
        else:
            todo += value.values()


def _plain(text: str) -> list[str]:
    """Words only, so that neither marks nor line ends hide that two sentences are the same."""
    return re.findall(r"[a-z0-9_/]+", text.lower())


def _descriptions(path: Path) -> Iterator[str]:
    todo: list[Any] = [json.loads(path.read_text(encoding="utf-8"))]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if isinstance(found := value.get("description"), str):
                yield found
            todo += value.values()
        elif isinstance(value, list):
            todo += value


def test_words_of_fields_are_kept_by_the_revision_since_which_they_hold() -> None:
    entry = {"is": "A tool.", "a": "Its a.", "b": "Its b.", "2050-01-01": {"a": "Its new a.", "c": "Its c."}}
    assert words_of_fields(Words({"Tool": entry, "None": {"is": "Nothing."}}, {"_meta": "More."}, {}, {})) == {
        "*": {"_meta": "More."},
        "Tool": {"a": {"": "Its a.", "2050-01-01": "Its new a."}, "b": "Its b.", "c": {"2050-01-01": "Its c."}},
    }
