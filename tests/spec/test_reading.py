"""How models read in an interpreter: signatures in Python's names, `dir` and `help` without what nobody asked for."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from inspect import signature

import dragoman_spec
from dragoman_spec import v2025_11_25, v2026_07_28


class RankedTool(v2025_11_25.Tool):
    """A tool with something of its own."""

    rank: int = 0

    def better(self, other: RankedTool) -> bool:
        """Whether it is."""
        return self.rank > other.rank


def test_signature_has_attributes_and_plain_types() -> None:
    assert str(signature(v2025_11_25.TextContent)) == (
        "(*, type: Literal['text'] = 'text', text: str, annotations: Annotations | None = None, "
        "meta: dict[str, Any] | None = None, **extra: Any) -> None"
    )


def test_signature_is_there_before_the_first_use() -> None:
    code = "import inspect; from dragoman_spec import v2024_11_05 as v; print(inspect.signature(v.Root))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(*, uri: str, name: str | None = None, **extra: Any) -> None"


def test_signature_says_what_is_filled_in() -> None:
    assert signature(v2026_07_28.EmptyResult.__value__).parameters["result_type"].default == "complete"


def test_json_schema_is_a_dict_in_a_signature() -> None:
    assert signature(v2025_11_25.Tool).parameters["input_schema"].annotation == "dict[str, Any]"


def test_methods_of_pydantic_have_short_signatures() -> None:
    assert str(signature(v2025_11_25.Tool.model_copy)) == "(self, *, update=None, deep=False)"
    assert str(signature(v2025_11_25.Tool.model_dump)).startswith("(self, *, mode='python', include=None, ")
    assert str(signature(v2025_11_25.Tool.model_validate)).startswith("(obj, *, strict=None, ")


def test_help_says_what_a_model_is_for_on_its_first_screen() -> None:
    lines = pydoc.plain(pydoc.render_doc(v2025_11_25.Tool)).splitlines()
    assert " |      name: The name of the tool, for `tools/call`." in lines[:40]
    # From 3.13 on, signatures have a line for each parameter.
    assert len(lines) < (60 if sys.version_info < (3, 13) else 140)


def test_directory_of_a_model_has_what_users_need() -> None:
    assert dir(v2025_11_25.Tool) == [
        *("model_copy", "model_dump", "model_dump_json", "model_json_schema", "model_validate", "model_validate_json"),
    ]


def test_directory_of_a_subclass_has_its_own() -> None:
    assert "better" in dir(RankedTool)


def test_directory_of_the_package_is_what_it_offers() -> None:
    assert dir(dragoman_spec) == sorted(dragoman_spec.__all__)
    assert all(hasattr(dragoman_spec, name) for name in dir(dragoman_spec))


def test_directory_of_a_revision_is_what_it_offers() -> None:
    assert dir(v2025_11_25) == sorted(v2025_11_25.__all__)
