"""Whatever is wrong in a schema or an overlay is an error that says where, in good time, and is never code."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codegen import __main__ as command
from codegen.ask.blanks import Blank, add_blanks
from codegen.ask.skeleton import add_entries, undecided_error
from codegen.errors import NotASchema, UnknownSchemaForm, UnusedDecision
from codegen.names import toml
from codegen.read.canonical import parse_schema
from codegen.read.fact_entries import entries_of
from codegen.read.fixes import read_fixes
from codegen.read.limits import DEPTH
from codegen.read.normalise import Normalised, normalise, read_normalised
from codegen.read.overlay import parse_overlay, read_overlay, read_until
from codegen.read.words import Words
from codegen.write.bindings import Beside, render_models
from codegen.write.steps import render_steps
from tests.support.small_specs import META, NEWER, OLDER, STRING, const, decision, object_of, plan, ref

TEMPLATES = Path(__file__).resolve().parents[2] / "codegen" / "templates"
KEEP = decision("down", "narrowed", "Tool.name", "keep")
EVIL = 'x"""\n[[fix]]\nwhere = 1\nCANARY()\n#\'\\\x7f\u2028\U0001f600'
"""A name that would be entries, or code, where it stands as it is."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KEEP + "with = 'x'\n", r"\[it\]: 'with' is a table, not 'x'"),
        (KEEP.replace('"Tool.name"', "5"), r"\[it\]: 'at' is a list of names, not '5'"),
        (KEEP.replace('"Tool.name"', "['a', {b = 1}]"), r"\[it\]: 'at' is a list of names"),
        (KEEP.replace('"keep"', "[]"), r"\[it\]: 'do' is a text"),
        (KEEP + "reviewed = 'no'\n", r"\[it\]: 'reviewed' is true or false"),
        ("order = 'x'\n", r"\[order\]: it is a table, not 'x'"),
        ("words = 'x'\n", r"\[words\]: it is a table"),
        ("[words.definition]\nTool = 'x'\n", r"\[words definition Tool\]: it is a table"),
        ("[words.definition.Tool]\nis = 5\n", r"\[words definition Tool is\]: it is a text"),
        ("[order]\nTool = ['a', {b = 1}]\n", r"\[order Tool\]: it is a list of names"),
        ("[order]\nx = 2020-01-01\n", r"\[/order/x\]: a date or a time, 2020-01-01"),
        ("[order]\nx = 12:00:00\n", r"\[/order/x\]: a date or a time, 12:00:00"),
        ("[order]\ny = inf\n", r"\[/order/y\]: inf, which is no number of JSON"),
        ("a = " + "[" * 5000 + "]" * 5000, r"\[the file\]: it has more than \d+ levels"),
        ("a = " + "[" * 60 + "]" * 60, r"\[/a(/0)+\]: more than \d+ levels"),
        ("\n\n" + "a" + ".a" * 50_000 + " = 1\n", r"\[line 3\]: a key of more than \d+ parts"),
        ("x = {" + "'a'. " * 50_000 + "b = 1}\n", r"\[line 1\]: a key of more than \d+ parts"),
        ("x = " + "1" * 5000 + "\n", r"\[the file\]: it is not TOML"),
        ("[[rule]]\nname='a'\nsummary='b'\ndefault=true\nhook=5\n", r"\[a\]: 'hook' is a list of tables"),
        ("[[rule]]\nsummary='b'\ndefault=true\n", r"\[rule\]: .*missing"),
        ("[[rule]]\nname='a'\nsummary='b'\ndefault=true\n[[rule.hook]]\nat='Tool'\n", r"\[a-both\]: .*missing"),
        ("[[rename]]\nname='a'\nwhat='method'\nnew='b'\nreason='c'\n", r"\[a\]: .*missing"),
        ("[[error]]\nname='a'\ncodes=[1]\nreason='c'\n", r"\[a\]: 'codes' is a list of two whole numbers"),
    ],
)
def test_a_value_of_another_type_is_refused_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(UnusedDecision, match=rf"^codegen/overlays/2002-02-02\.toml: {said}"):
        parse_overlay(NEWER, text)


@pytest.mark.parametrize(
    ("fix", "said"),
    [
        ({"pointer": 5}, "'pointer' is a text, not '5'"),
        ({"pointer": ""}, "a pointer begins with a slash"),
        ({"reason": []}, "'reason' is a text"),
    ],
)
def test_a_fix_of_another_type_is_refused(fix: dict[str, Any], said: str) -> None:
    whole = {"name": "a", "pointer": "/$defs/A", "expect": 1, "replace": 2, "reason": "So.", **fix}
    with pytest.raises(UnusedDecision, match=said):
        read_fixes(NEWER, {"fix": [whole]})


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("local", {"methods": [{"a": 1}]}),
        ("log_levels", {"order": [[1]]}),
        ("header", {"name": "A", "carries": "name", "members": {"a": [1]}}),
        ("gone", {"local": [{"a": 1}]}),
        ("gone", {"local": {"a": 1}}),
    ],
)
def test_an_entry_of_facts_with_something_else_in_a_list_is_refused(table: str, says: dict[str, Any]) -> None:
    with pytest.raises(UnusedDecision, match=r"in which something is no text|neither a text nor a number"):
        entries_of("o", NEWER, {table: [{**says, "reason": "So."}]})


def test_an_overlay_that_is_not_utf_8_is_refused_with_the_line(tmp_path: Path) -> None:
    folder = tmp_path / "codegen" / "overlays"
    folder.mkdir(parents=True)
    (folder / f"{NEWER}.toml").write_bytes(b'# a\na = "\xff"\n')
    with pytest.raises(UnusedDecision, match=r"\[line 2\]: it is not UTF-8"):
        read_overlay(tmp_path, NEWER)
    with pytest.raises(UnusedDecision, match=r"\[line 2\]: it is not UTF-8"):
        read_until(folder / f"{NEWER}.toml")


def arrays(depth: int) -> dict[str, Any]:
    """Lists in lists, so many levels of JSON."""
    node: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        node = {"type": "array", "items": node}
    return node


def objects(depth: int) -> dict[str, Any]:
    """Objects in objects, so many levels of JSON."""
    node: dict[str, Any] = {"type": "string"}
    for _ in range(depth // 2):
        node = {"type": "object", "properties": {"a": node}, "required": ["a"]}
    return node


def unions(depth: int) -> dict[str, Any]:
    """Unions in unions, so many levels of JSON."""
    node: dict[str, Any] = {"type": "string"}
    for _ in range(depth // 2):
        node = {"anyOf": [{"type": "array", "items": node}, {"type": "integer"}]}
    return node


def planted(root: Path, text: str | bytes) -> Path:
    folder = root / "schema" / NEWER
    folder.mkdir(parents=True)
    (folder / "schema.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


@pytest.mark.parametrize("make", [arrays, objects, unions])
def test_a_schema_as_deep_as_may_be_is_rendered(make: Any) -> None:
    schema = normalise(NEWER, {"$defs": {"A": {"type": "object", "properties": {"x": make(DEPTH - 5)}}}})
    assert ast.parse(rendered(schema))


@pytest.mark.parametrize("depth", [DEPTH, 100, 400])
def test_a_schema_that_is_deeper_is_refused_with_the_place(tmp_path: Path, depth: int) -> None:
    text = json.dumps({"$defs": {"A": arrays(depth), "M": object_of(method=const("m"))}})
    with pytest.raises(UnknownSchemaForm, match=r"/\$defs/A/items/items.*more than \d+ levels"):
        read_normalised(planted(tmp_path, text), NEWER)
    with pytest.raises(NotASchema, match=r"at /\$defs/A/items/items.* it has more than \d+ levels"):
        parse_schema(text.encode(), "there")


@pytest.mark.parametrize("link", [ref, lambda name: {"allOf": [ref(name)]}, lambda name: object_of(a=ref(name))])
def test_a_chain_of_definitions_has_an_end(tmp_path: Path, link: Any) -> None:
    chain = {f"D{number}": link(f"D{number + 1}") for number in range(3000)}
    with pytest.raises(UnknownSchemaForm, match=r"a chain of more than \d+ definitions"):
        read_normalised(planted(tmp_path, json.dumps({"$defs": {**chain, "D3000": STRING}})), NEWER)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "what is not JSON"),
        ("{nope", "what is not JSON"),
        ("\ufeff{}", "what is not JSON"),
        (b"\xff\xfe{}", "what is not JSON"),
        ("[" * 100_000, "what is not JSON"),
        ("[]", "a file without an object of definitions"),
        ('{"$defs": []}', "a file without an object of definitions"),
        ('{"$defs": {"A": {"const": NaN}}}', r"/\$defs/A/const: no rule for nan"),
    ],
)
def test_a_pinned_file_that_is_no_schema_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(UnknownSchemaForm, match=said):
        read_normalised(planted(tmp_path, text), NEWER)


def test_a_name_stays_one_name_in_an_overlay_and_in_what_is_said() -> None:
    older = {**META, "Tool": object_of("a", a=STRING), "B": object_of(m=const("m"))}
    newer = {**META, "Tool": object_of("a", EVIL, a=STRING, **{EVIL: STRING}), "B": object_of(m=const(EVIL))}
    step = plan(older, newer)
    assert any(EVIL in change.at for change in step.undecided)
    for complete in (False, True):
        text = add_entries("", step, complete=complete)
        assert tomllib.loads(text).keys() == {"decision"}
        assert all(line.isprintable() for line in text.split("\n"))
    error = undecided_error(step, "")
    assert str(error).count("\n") == len(error.changes) + 1


def test_a_blank_for_any_name_is_toml_and_put_there_once() -> None:
    blanks = [Blank(("words", "definition", EVIL, name), "") for name in (EVIL, "a = b", "plain")]
    text = add_blanks("", [*blanks, Blank(("order", EVIL), [EVIL, "b"])])
    assert tomllib.loads(text) == {
        "words": {"definition": {EVIL: {EVIL: "", "a = b": "", "plain": ""}}},
        "order": {EVIL: [EVIL, "b"]},
    }
    assert add_blanks(text, blanks) == text


@pytest.mark.parametrize("value", [EVIL, "", 1.5, True, ["a", EVIL]])
def test_toml_says_what_was_given(value: Any) -> None:
    assert tomllib.loads(f"x = {toml(value)}") == {"x": value}


def rendered(schema: Normalised, words: Words | None = None) -> str:
    beside = Beside(words) if words else None
    (text, *_) = render_models([schema], {schema.revision: "0" * 64}, beside).values()
    return text


@pytest.mark.parametrize(
    "said", ['is called "x"', '"', 'a """ b', "a\\", 'a\\"', 'x"""\n    CANARY()\n    """', '"""', "'''", EVIL]
)
def test_words_are_words_in_models(said: str) -> None:
    history = {NEWER: said}
    words = Words({"A": {"is": history, "x": history}, "B": {"is": history}}, {"y": history})
    schema = {"A": object_of(x=STRING, y=STRING), "B": {"type": "array", "items": STRING}}
    assert not calls_canary(rendered(normalise(NEWER, {"$defs": schema}), words))


def test_names_of_entries_and_fields_are_no_code_in_steps() -> None:
    entry = decision("up", "required", "Tool.b", "default", with_="{ value = 'x' }").replace('"it"', toml(EVIL))
    older, newer = {"Tool": object_of(**{EVIL: object_of(a=STRING)})}, {"Tool": object_of("b", b=STRING)}
    step = plan({**META, **older}, {**META, **newer}, entry)
    text = render_steps([step], dict.fromkeys((OLDER, NEWER), "1" * 64))["dragoman_spec/v2002_02_02/steps.py"]
    assert "CANARY" in text
    assert not calls_canary(text)


def calls_canary(text: str) -> bool:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "CANARY" for call in calls)


def test_templates_put_nothing_between_quotation_marks_that_is_not_known_to_be_safe() -> None:
    """What stands in docstrings is made safe before, by `names.docstring`, or is our own; who adds some looks here."""
    found = {
        said
        for file in TEMPLATES.rglob("*.jinja*")
        for line in file.read_text("utf-8").splitlines()
        if '"""' in line and file.parent.name != "docs"
        for said in re.findall(r"{{ (.*?) }}", line)
    }
    ours = {"module_name", "plan.newer.revision", "plan.older.revision", "revision", "what"}
    ended = {"field.docstring", '" " if field.docstring.endswith(\'"\')'}
    assert found == ours | ended | {
        "description",
        'description | default("") | indent(4)',
        "description or field.docstring",
        "f.title",
    }


def test_what_nobody_foresaw_is_one_line_with_the_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(root: Path) -> None:
        raise ZeroDivisionError("one\ntwo")

    monkeypatch.setattr(command.regen, "read_tree", fail)
    assert command.guarded(["regen", "--root", str(tmp_path)]) == 70
    said = capsys.readouterr().err
    assert said.startswith("codegen: ZeroDivisionError at codegen/maintain/regen.py:")
    assert "one\\ntwo" in said
    assert said.count("\n") == 1
    with pytest.raises(ZeroDivisionError):
        command.main(["regen", "--root", str(tmp_path)])
