"""Words: found for the nearest place and revision, none missing for what is pinned, none taken from upstream."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codegen.ask.blanks import add_blanks, blanks_of
from codegen.errors import UnusedDecision
from codegen.read.normalise import Normalised, normalise, read_normalised
from codegen.read.overlay import overlay_path, read_until
from codegen.read.pins import check_pins
from codegen.read.words import NO_WORDS, Words, check_words, missing_words, words_of, words_of_fields
from tests.support.judge import UPSTREAM

ROOT = Path(__file__).resolve().parents[2]
STRING = {"type": "string"}


@cache
def _pinned() -> tuple[Normalised, ...]:
    return tuple(read_normalised(ROOT, revision) for revision in check_pins(ROOT / "schema"))


def _written() -> Words:
    """The words of the overlays that there are."""
    return words_of(read_until(ROOT / overlay_path(_pinned()[-1].revision)))


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _schema(revision: str = "2020-01-01") -> Normalised:
    params = {"$ref": "#/$defs/PokeRequestParams"}
    request = _object(method={"const": "poke", "type": "string"}, params=params)
    definitions = {
        "PokeRequest": request,
        "PokeRequestParams": _object(hard=STRING),
        "Poked": _object(hard=STRING, deep=STRING, _meta=STRING),
        "PokedResponse": _object(result={"$ref": "#/$defs/Poked"}),
        "PokedNotification": _object(method={"const": "poked", "type": "string"}),
    }
    return normalise(revision, {"$defs": definitions})


WORDS = words_of(
    [
        (
            "2020-01-01",
            {
                "words": {
                    "method": {"poke": "Pokes.", "poked": "Says that somebody poked."},
                    "field": {"hard": "How hard to poke."},
                    "definition": {
                        "Poked": {"is": "A poke.", "hard": "How hard it was.", "deep": "How deep.", "_meta": "More."}
                    },
                }
            },
        ),
        ("2021-01-01", {"words": {"field": {"hard": "Whether to poke hard."}}}),
        ("2022-01-01", {"words": {"definition": {"Poked": {"hard": "How hard.", "is": ""}}}}),
    ]
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


def test_a_blank_says_nothing() -> None:
    assert WORDS.definition("Poked", _schema("2022-01-01")) == "A poke."


def test_what_has_no_words_is_listed() -> None:
    assert [".".join(place) for place in missing_words(WORDS, _schema())] == [
        "field.method",
        "definition.PokeRequest.params",
        "definition.PokedResponse.result",
    ]


def test_a_method_without_words_is_asked_about_and_its_frames_are_not() -> None:
    found = [".".join(place) for place in missing_words(NO_WORDS, _schema())]
    assert found == [
        "method.poke",
        "method.poked",
        "field.hard",
        "field.method",
        "definition.PokeRequest.params",
        "definition.Poked._meta",
        "definition.Poked.deep",
        "definition.Poked.is",
        "definition.PokedResponse.result",
    ]


@pytest.mark.parametrize(
    ("tables", "place"),
    [
        ({"words": {"definition": {"Gone": {"is": "x"}}}}, "words.definition Gone.is"),
        ({"words": {"definition": {"Poked": {"soft": "x"}}}}, "words.definition Poked.soft"),
        ({"words": {"field": {"soft": "x"}}}, "words.field soft"),
        ({"words": {"method": {"prod": "x"}}}, "words.method prod"),
        ({"words": {"methods": {"poke": "x"}}}, "words.methods"),
        ({"order": {"Poked": ["soft"]}}, "order Poked.soft"),
        ({"order": {"Gone": ["hard"]}}, "order Gone.hard"),
    ],
)
def test_words_for_what_the_revision_has_not_are_an_error(tables: dict[str, Any], place: str) -> None:
    with pytest.raises(UnusedDecision, match=re.escape(f"codegen/overlays/2020-01-01.toml: [{place}]")):
        check_words(tables, _schema())


def test_a_new_field_comes_behind_the_one_before_it() -> None:
    tables = [["a", "b", "_meta"], ["new", "a"], ["b", "c", "d"]]
    overlays = [(f"202{at}-01-01", {"order": {"A": names}}) for at, names in enumerate(tables)]
    assert words_of(overlays).order["A"] == ["new", "a", "b", "c", "d", "_meta"]


def test_blanks_are_asked_for_where_they_belong() -> None:
    overlay = """\
# What is there.

[words.definition.PokeRequest]
is = "A wish to poke."

[[rule]]
name = "x"
"""
    assert (
        add_blanks(overlay, blanks_of(_schema(), WORDS))
        == """\
# What is there.

[words.definition.PokeRequest]
is = "A wish to poke."
params = ""

[[rule]]
name = "x"

# What methods, definitions and fields mean, in our own words, where no earlier overlay says so already.

[words.field]
method = ""

[words.definition.PokedResponse]
result = ""

# Where a reader meets new fields: each behind the one before it, as in the official `schema.ts`.

[order]
Poked = ["deep", "hard"]
"""
    )


def test_blanks_are_not_put_twice() -> None:
    blanks = blanks_of(_schema(), NO_WORDS)
    once = add_blanks("", blanks)
    assert add_blanks(once, blanks) == once
    assert words_of([("2020-01-01", tomllib.loads(once))]).order == {"Poked": ["deep", "hard"]}


def test_what_an_earlier_revision_lacks_is_asked_for_there() -> None:
    earlier = {blank.place for blank in blanks_of(_schema(), NO_WORDS)}
    assert blanks_of(_schema("2021-01-01"), NO_WORDS, earlier) == []


def test_fields_not_in_the_order_come_last() -> None:
    words = Words(order={"A": ["c", "b"]})
    assert words.arrange("A", ["a", "b", "c", "d"], ["d"]) == ["d", "c", "b", "a"]


def test_what_frames_have_comes_first_and_metadata_last() -> None:
    words = Words(order={"A": ["type", "id"]})
    assert words.arrange("A", ["x", "_meta", "id", "type", "method"], []) == ["method", "type", "id", "x", "_meta"]


@pytest.mark.parametrize("schema", _pinned(), ids=lambda schema: schema.revision)
def test_everything_pinned_has_words_and_a_place(schema: Normalised) -> None:
    assert blanks_of(schema, _written()) == []


def test_words_are_sentences() -> None:
    assert [said for said in _all_words() if not said[0].isupper() or said[-1] != "."] == []


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="upstream's files are not here: run `nox -s pull -- --proofs`")
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
    words = _written()
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
    schemas = [normalise(f"20{n}0-01-01", {"$defs": {"Tool": _object(a=STRING, b=STRING)}}) for n in (2, 5)]
    entry = {"is": {"2020-01-01": "A tool."}, "a": {"2020-01-01": "Its a.", "2050-01-01": "Its new a."}}
    entry |= {"b": {"2050-01-01": "Its b."}, "c": {"2050-01-01": "Its c."}, "d": {"2050-01-01": ""}}
    words = Words({"Tool": entry, "None": {"is": {"2020-01-01": "Nothing."}}}, {"_meta": {"2020-01-01": "More."}})
    assert words_of_fields(words, schemas) == {
        "*": {"_meta": "More."},
        "Tool": {"a": {"": "Its a.", "2050-01-01": "Its new a."}, "b": {"2050-01-01": "Its b."}, "c": "Its c."},
    }
