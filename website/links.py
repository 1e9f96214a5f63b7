"""Every link of the built site leads somewhere, and no page asks another host for anything.

Lives here: reading what was built, and nothing of how. A link is the href of an `a`; what a browser loads by itself is
the src or href of anything else, and what a style sheet names. Links to other hosts are for a person to follow, and are
left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

IN_STYLES: Final = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
LOADED: Final = {"src", "srcset", "poster", "data"}
NOT_LOADED: Final = {"canonical", "prev", "next", "alternate", "edit"}


@dataclass
class Found(HTMLParser):
    """What a page has: anchors, links for a person, and what a browser loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what an element names."""
        said = {name: value or "" for name, value in attrs}
        self.anchors |= {said[name] for name in ("id", "name") if said.get(name)}
        self.loads += [said[name] for name in LOADED if said.get(name) and not (tag == "object" and name == "data")]
        if "href" in said and tag == "a":
            self.links.append(said["href"])
        elif "href" in said and said.get("rel") not in NOT_LOADED and tag != "base":
            self.loads.append(said["href"])


def complaints(site: Path) -> list[str]:
    """Return a line for each link of a folder of pages that leads nowhere, and for each thing of another host."""
    site = site.resolve()
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    found = [line for path in pages for line in of_page(path, site, pages)]
    for sheet in sorted(site.rglob("*.css")):
        named = [first or second for first, second in IN_STYLES.findall(sheet.read_text("utf-8"))]
        found += [f"{sheet.relative_to(site)} loads {one}" for one in named if is_elsewhere(one)]
    return found


def read(path: Path) -> Found:
    """Return what a page has."""
    found = Found()
    found.feed(path.read_text("utf-8"))
    return found


def of_page(path: Path, site: Path, pages: dict[Path, Found]) -> Iterator[str]:
    """Give what is wrong with one page. Where an error page will stand is not known, so nothing of it is followed."""
    name, page = path.relative_to(site), pages[path]
    yield from (f"{name} loads {one}" for one in page.loads if is_elsewhere(one))
    if path.name == "404.html":
        return
    for link in [*page.links, *page.loads]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.exists() or not target.is_relative_to(site):
            yield f"{name} links to {link}, which is not there"
        elif parts.fragment and target in pages and not is_anchor(unquote(parts.fragment), pages[target]):
            yield f"{name} links to {link}: that page has no such heading"


def is_anchor(fragment: str, page: Found) -> bool:
    """Say whether a page has what a link names; the theme's own scripts make the anchors that begin with two lines."""
    return fragment in page.anchors or fragment.startswith("__")


def is_elsewhere(url: str) -> bool:
    """Say whether a browser would ask another host."""
    return bool(urlsplit(url).netloc)
