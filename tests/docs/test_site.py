"""The site: pages are found from each other, what is generated is complete, and a dead link is noticed."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.test_docs import PAGES, ROOT, blocks
from website import links, sources
from website.sources import ROOT as SITE_ROOT


def write(folder: Path, **pages: str) -> Path:
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<!doctype html><title>x</title><body>{body}", "utf-8")
    return folder


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('<a href="b.html">x</a><a href="b.html#part">x</a><a href="https://example.com/">x</a>', []),
        ('<a href="c.html">x</a>', ["a.html links to c.html, which is not there"]),
        ('<a href="b.html#other">x</a>', ["a.html links to b.html#other: that page has no such heading"]),
        ('<a href="#other">x</a>', ["a.html links to #other: that page has no such heading"]),
        ('<script src="https://example.com/x.js"></script>', ["a.html loads https://example.com/x.js"]),
        ('<link rel="stylesheet" href="//example.com/x.css">', ["a.html loads //example.com/x.css"]),
        ('<img src="x.png">', ["a.html links to x.png, which is not there"]),
        ('<link rel="canonical" href="https://example.com/a.html">', []),
    ],
)
def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path, body: str, complaint: list[str]) -> None:
    write(tmp_path, a=body, b='<h2 id="part">x</h2>')
    assert links.complaints(tmp_path) == complaint


def test_a_link_out_of_the_site_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "outside.py").touch()
    (tmp_path / "site").mkdir()
    write(tmp_path / "site", a='<a href="../outside.py">x</a>')
    assert links.complaints(tmp_path / "site") == ["a.html links to ../outside.py, which is not there"]


def test_a_font_of_another_host_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("@font-face{src:url(https://example.com/x.woff2)} a{b:url('x.png')}", "utf-8")
    assert links.complaints(tmp_path) == ["x.css loads https://example.com/x.woff2"]


def relinked(text: str, repository: str = "") -> str:
    page = SITE_ROOT / "docs" / "decisions" / "README.md"
    places = {SITE_ROOT / "docs" / "cli.md": "cli.md", SITE_ROOT / "SECURITY.md": "reporting.md"}
    return sources.relink(text, page, "decisions/README.md", places, repository)


def test_links_between_files_are_links_between_pages() -> None:
    shown = relinked("[`a`](../cli.md#x), [b](../../SECURITY.md), [c](https://example.com), `[d](../cli.md)`")
    assert shown == "[`a`](../cli.md#x), [b](../reporting.md), [c](https://example.com), `[d](../cli.md)`"


def test_a_file_that_is_no_page_is_named_or_found_in_the_repository() -> None:
    link = "[the build](../../noxfile.py)"
    where = "https://example.com/it"
    assert (relinked(link), relinked(link, where)) == ("the build", f"[the build]({where}/blob/main/noxfile.py)")


@pytest.mark.parametrize(
    ("block", "language"),
    [("dragoman demo\ndragoman list", "sh"), ("$ dragoman demo\nA client", "console"), ("say\n$ more", "console")],
)
def test_commands_without_output_are_a_script(block: str, language: str) -> None:
    shown = sources.COMMANDS.sub("```sh\n", f"text\n\n```console\n{block}\n```\n\nmore\n")
    assert f"\n```{language}\n" in shown


def test_a_file_that_is_not_there_ends_the_build() -> None:
    with pytest.raises(ValueError, match=r"there is no nowhere\.md"):
        relinked("[a](nowhere.md)")


def test_every_page_is_in_the_navigation() -> None:
    configuration = (ROOT / "zensical.toml").read_text("utf-8")
    folders = re.findall(r'"([\w-]+)/\*"', configuration)
    pages = [path.relative_to(ROOT / "docs") for path in ROOT.glob("docs/**/*.md")]
    missing = [str(page) for page in pages if str(page.parent) not in folders and f'"{page}"' not in configuration]
    assert missing == [], "name them in zensical.toml, in the part where a reader looks for them"


def test_what_draws_the_pages_is_pinned_exactly() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    assert all("==" in requirement for requirement in groups["docs"])


@pytest.fixture(scope="module")
def api() -> ModuleType:
    pytest.importorskip("griffe", reason="`nox -s docs` brings griffe")
    from website import api

    return api


@pytest.fixture(scope="module")
def reference(api: ModuleType) -> str:
    return "".join(api.render(api.load()).values())


def imported_names() -> set[str]:
    """What our pages and examples import of ours: `dragoman.proxy.Proxy`."""
    programs = [block for page in PAGES for block in blocks(page, "python")]
    programs += [path.read_text("utf-8") for path in ROOT.glob("examples/*.py")]
    return {
        f"{node.module}.{alias.name}"
        for program in programs
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("dragoman", "dragoman_spec")
        for alias in node.names
        if not alias.name.startswith("v2")
    }


def test_whatever_pages_and_examples_import_is_in_the_reference(reference: str) -> None:
    assert sorted(name for name in imported_names() if f"{{ #{name} }}" not in reference) == []


def test_the_reference_has_signatures_arguments_and_errors(reference: str) -> None:
    entry = reference.split("{ #dragoman_spec.translate }")[1].split("\n## ")[0]
    for part in ("from dragoman_spec import translate", "source: str", "| `target` |", "| `UnsupportedRevision` |"):
        assert part in entry


def test_models_have_their_fields_and_names_on_the_wire(api: ModuleType) -> None:
    from website import models

    page = models.render(api.load())["api/v2025_06_18.md"]
    tool = page.split("\n## Tool\n")[1].split("\n## ")[0]
    assert "| `input_schema: ToolInputSchema` |" in tool
    assert "On the wire: `inputSchema`." in tool
    assert "*request of the client*: `CallToolRequestParams` → `CallToolResult`" in page


def test_a_module_leads_to_where_its_names_are_described(api: ModuleType) -> None:
    described = api.places(api.load())
    link = "[a `Message`](../../runtime/dragoman/middleware.py)"
    page = SITE_ROOT / "docs" / "internals" / "where.md"
    shown = sources.relink(link, page, "internals/where.md", described, "")
    assert shown == "[a `Message`](../api/middleware.md)"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("# A page\n\nIt does this: one thing, and another. And more.\n", "It does this: one thing, and another."),
        ("# A page\n\nIt does 1.2 of this. Otherwise:\n\n| a | b |\n", "It does 1.2 of this."),
        ("# A page\n\nSome of it:\n\nAll of it. More.\n", "All of it."),
        ("# 5. Why\n\n**Context.** Models drop\nfields. So we keep them.\n", "Models drop fields."),
        ("# Parts\n\n```text\na\n```\n\n1. A **part** reads. It\n   does.\n", "A **part** reads."),
        ("# nginx.conf\n\n\n\n```text\n# Two proxies. See there.\n```\n", "Two proxies."),
    ],
)
def test_what_models_read_of_a_page_is_a_whole_sentence(api: ModuleType, page: str, said: str) -> None:
    from website.__main__ import summary

    assert summary(page) == said
