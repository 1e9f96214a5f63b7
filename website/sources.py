"""What the site is made of: pages of the repository, with the place where each stands in the site, and links between.

Lives here: which files become pages, and turning links between files into links between pages. A link to what is not
in the site leads to the repository, if somebody says where that is; otherwise only its words stay.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TOP: Final = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "reporting.md"}
"""Pages at the top of the repository, and what they are called in the site."""

LINK: Final = re.compile(
    r"^```.*?^```$|(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\((?!https?://|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
"""A link to a file, in three groups; or a piece of code, in none, within which nothing is a link."""
CELL: Final = re.compile(r"(?<!`)`[^`\n]*\\\|[^`\n]*`")
COMMANDS: Final = re.compile(r"^```console\n(?=(?:(?!\$ |```).*\n)+```$)", re.MULTILINE)
"""The beginning of commands that are shown without what they print: every line of them is one."""
LANGUAGES: Final = {".py": "python", ".json": "json", ".yaml": "yaml"}
DIAGRAM: Final = re.compile(r"^```mermaid$", re.MULTILINE)
DRAWS: Final = '\n<script src="{}assets/mermaid.min.js"></script>\n'


def gather() -> dict[str, Path]:
    """Return the files of the site that are written or kept in the repository, by their places in the site."""
    found = {str(path.relative_to(ROOT / "docs")): path for path in ROOT.glob("docs/**/*") if path.is_file()}
    found |= {place: ROOT / name for name, place in TOP.items()}
    found |= {place_of(path): path for path in ROOT.glob("examples/**/*") if path.is_file() and path.suffix != ".pyc"}
    return dict(sorted(found.items()))


def pages(
    has_diagrams: bool, repository: str = "", described: Mapping[Path, str] = MappingProxyType({})
) -> Iterator[tuple[str, str | bytes]]:
    """Give each file with its place, links leading to places; diagrams are text where nothing draws them.

    Args:
        has_diagrams: Whether `assets/mermaid.min.js` is there, which draws them.
        repository: The URL of the project, for links to files that are no pages.
        described: Places of pages that are made from modules, by the files of these.
    """
    found = gather()
    places = {path: place for place, path in found.items()} | dict(described)
    for place, path in found.items():
        if place.startswith("examples/"):
            yield place, example(path)
        elif path.suffix == ".md":
            text = relink(path.read_text("utf-8"), path, place, places, repository)
            if DIAGRAM.search(text):
                up = "../" * place.count("/")
                text = text + DRAWS.format(up) if has_diagrams else DIAGRAM.sub("```text", text)
            yield place, COMMANDS.sub("```sh\n", text)
        else:
            yield place, path.read_bytes()


def relink(text: str, path: Path, place: str, places: Mapping[Path, str], repository: str) -> str:
    """Return a page whose links to files lead to where these files stand in the site."""

    def lead(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        if not words:
            return match[0]
        there = (path.parent / target).resolve()
        if there in places:
            return f"{words}({relative(places[there], place)}{anchor})"
        if not there.exists():
            raise ValueError(f"{path}: there is no {target}")
        name = there.relative_to(ROOT).as_posix()
        return f"{words}({repository}/blob/main/{name}{anchor})" if repository else words[1:-1]

    return LINK.sub(lead, text)


def bars(text: str) -> str:
    """Return a page with bars in code as Zensical takes them; viewers of repositories want them escaped in a table."""
    return CELL.sub(lambda code: code[0].replace("\\|", "|"), text)


def place_of(example: Path) -> str:
    """Return where an example stands; those of a folder have its name before theirs."""
    name = example.relative_to(ROOT / "examples")
    return f"examples/{name.stem if name.suffix == '.py' else '-'.join(name.parts)}.md"


def relative(target: str, place: str) -> str:
    """Return how a page at one place names another place."""
    return PurePosixPath(os.path.relpath(target, os.path.dirname(place) or ".")).as_posix()


def example(path: Path) -> str:
    """Return a program, or a file of another one's, as a page."""
    text, language = path.read_text("utf-8"), LANGUAGES.get(path.suffix, "text")
    about = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0] if language == "python" else ""
    return f"# {path.name}\n\n{about}\n\n```{language}\n{text.rstrip()}\n```\n"
