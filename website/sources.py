"""What the site is made of: pages of the repository, with the place where each stands in the site, and links between.

Lives here: which files become pages, and turning links between files into links between pages. A link to what is not
in the site leads to the repository, if somebody says where that is; otherwise only its words stay.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TOP: Final = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "reporting.md"}
"""Pages at the top of the repository, and what they are called in the site."""

LINK: Final = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\((?!https?://|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
VERBATIM: Final = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
CELL: Final = re.compile(r"(?<!`)`[^`\n]*\\\|[^`\n]*`")
DIAGRAM: Final = re.compile(r"^```mermaid$", re.MULTILINE)
DRAWS: Final = '\n<script src="{}assets/mermaid.min.js"></script>\n'


def gather() -> dict[str, Path]:
    """Return the files of the site that are written or kept in the repository, by their places in the site."""
    found = {str(path.relative_to(ROOT / "docs")): path for path in ROOT.glob("docs/**/*") if path.is_file()}
    found |= {place: ROOT / name for name, place in TOP.items()}
    found |= {f"examples/{path.stem}.md": path for path in ROOT.glob("examples/*.py")}
    return dict(sorted(found.items()))


def pages(has_diagrams: bool, repository: str = "") -> Iterator[tuple[str, str | bytes]]:
    """Give each file with its place, links leading to places; diagrams are text where nothing draws them.

    Args:
        has_diagrams: Whether `assets/mermaid.min.js` is there, which draws them.
        repository: The URL of the project, for links to files that are no pages.
    """
    found = gather()
    places = {path: place for place, path in found.items()}
    for place, path in found.items():
        if path.suffix == ".py":
            yield place, example(path)
        elif path.suffix == ".md":
            text = relink(path.read_text("utf-8"), path, place, places, repository)
            if DIAGRAM.search(text):
                up = "../" * place.count("/")
                text = text + DRAWS.format(up) if has_diagrams else DIAGRAM.sub("```text", text)
            yield place, text
        else:
            yield place, path.read_bytes()


def relink(text: str, path: Path, place: str, places: Mapping[Path, str], repository: str) -> str:
    """Return a page whose links to files lead to where these files stand in the site."""

    def lead(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        there = (path.parent / target).resolve()
        if there in places:
            return f"{words}({relative(places[there], place)}{anchor})"
        if not there.exists():
            raise ValueError(f"{path}: there is no {target}")
        name = there.relative_to(ROOT).as_posix()
        return f"{words}({repository}/blob/main/{name}{anchor})" if repository else words[1:-1]

    return outside_of_code(text, lambda part: LINK.sub(lead, part))


def bars(text: str) -> str:
    """Return a page with bars in code as Zensical takes them; viewers of repositories want them escaped in a table."""
    return CELL.sub(lambda code: code[0].replace("\\|", "|"), text)


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text whose parts that are not code have been changed."""
    parts = VERBATIM.split(text)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def relative(target: str, place: str) -> str:
    """Return how a page at one place names another place."""
    return PurePosixPath(os.path.relpath(target, os.path.dirname(place) or ".")).as_posix()


def example(path: Path) -> str:
    """Return a program as a page."""
    text = path.read_text("utf-8")
    about = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    return f"# {path.name}\n\n{about}\n\n```python\n{text.rstrip()}\n```\n"
