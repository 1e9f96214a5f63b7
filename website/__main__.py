"""`python -m website [FOLDER]`: build the site into `site/`, with `llms.txt`, and fail if a link leads nowhere.

Three variables may say what this machine knows: DRAGOMAN_SITE_URL, where the site will stand; DRAGOMAN_PROJECT_URL,
where the repository is; DRAGOMAN_SITE_NPM, the folder with the packages of `npm/package.json`. Without these, diagrams
stay text, and the search works only where a server serves the site.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from website import api, links, models, sources
from website.sources import ROOT

HERE: Final = Path(__file__).parent
SITE: Final = ROOT / "site"
CONFIGURATION: Final = ROOT / "zensical.toml"
SCRIPTS: Final = {"mermaid.min.js": "mermaid/dist/mermaid.min.js", "worker.js": "iframe-worker/shim/index.js"}
"""What the packages of npm have for the site."""
FOLDER: Final = re.compile(r'"([\w-]+)/\*"')
HEADING: Final = re.compile(r"^# (.+)$", re.MULTILINE)
NOT_WORDS: Final = re.compile(
    r"\A---\n.*?^---$|^```.*?^```$|<!--.*?-->|^[#|!][^\n]*$|^(?:- |\d+\. )|\]\([^)]*\)|\[|\*\*Context\.\*\* ",
    re.DOTALL | re.MULTILINE,
)
SENTENCE: Final = re.compile(r".+?\.(?= \W*[A-Z]|$)")
COMMENT: Final = re.compile(r"^# (.+)$", re.MULTILINE)


def main() -> None:
    """Build the site."""
    site = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SITE
    with tempfile.TemporaryDirectory() as work:
        build(Path(work), site)


def build(work: Path, site: Path) -> None:
    """Build the site in one folder and put it into another one."""
    pages = work / "pages"
    write_pages(pages)
    shutil.copytree(HERE / "overrides", work / "overrides")
    configuration = expand(CONFIGURATION.read_text("utf-8"), pages)
    (work / "zensical.toml").write_text(configuration, "utf-8")
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=work, check=True)
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(work / "html", site)
    navigation = tomllib.loads(configuration)["project"]
    listed = set(paths_of(navigation["nav"]))
    written = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    wrong = [f"zensical.toml does not list {path}" for path in sorted(written - listed)] + links.complaints(site)
    if wrong:
        sys.exit("\n".join(wrong))
    write_for_models(pages, site, navigation)
    print(f"{len(written)} pages in {site}; begin with index.html")


def write_pages(folder: Path) -> None:
    """Write what Zensical reads."""
    packages_of_npm = os.environ.get("DRAGOMAN_SITE_NPM", "")
    repository = os.environ.get("DRAGOMAN_PROJECT_URL", "")
    packages = api.load()
    generated = api.render(packages) | models.render(packages)
    written = sources.pages(bool(packages_of_npm), repository, api.places(packages))
    for place, content in [*written, *generated.items()]:
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sources.bars(content).encode() if isinstance(content, str) else content)
    shutil.copytree(HERE / "assets", folder / "assets")
    for name, script in SCRIPTS.items() if packages_of_npm else ():
        shutil.copy(Path(packages_of_npm) / "node_modules" / script, folder / "assets" / name)


def expand(configuration: str, pages: Path) -> str:
    """Return the configuration with the pages of folders, each with its title, and with what this machine knows."""
    listed = set(re.findall(r'"([\w./-]+\.md)"', configuration))

    def fill(match: re.Match[str]) -> str:
        found = sorted(path.relative_to(pages).as_posix() for path in (pages / match[1]).glob("*.md"))
        entries = [f"{{ {json.dumps(title(pages / path))} = {json.dumps(path)} }}" for path in found]
        return ", ".join(entry for entry, path in zip(entries, found, strict=True) if path not in listed)

    configuration = FOLDER.sub(fill, configuration)
    if (pages / "assets" / "worker.js").exists():
        configuration += '\n[project.extra]\nworker = "assets/worker.js"\n'
    url = os.environ.get("DRAGOMAN_SITE_URL", "")
    return configuration.replace("[project]\n", f"[project]\nsite_url = {json.dumps(url)}\n") if url else configuration


def title(page: Path) -> str:
    """Return the heading of a page as plain text."""
    found = HEADING.search(page.read_text("utf-8"))
    return found[1].replace("`", "") if found else page.stem


def paths_of(entry: Any) -> Iterator[str]:
    """Give the pages of a part of the navigation, in their order."""
    if isinstance(entry, str):
        yield entry
    for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from paths_of(part)


def write_for_models(pages: Path, site: Path, project: Any) -> None:
    """Write `llms.txt`, which language models read, and beside each page its Markdown."""
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}."]
    for section in project["nav"]:
        ((name, entries),) = section.items()
        lines += ["", f"## {name}", ""]
        for path in paths_of(entries):
            page = pages / path
            lines.append(f"- [{title(page)}]({path}): {summary(page.read_text('utf-8'))}")
            shutil.copy(page, site / path)
    (site / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def summary(text: str) -> str:
    """Return the first sentence of a page; of one that is a file alone, its first comment."""
    paragraphs = (" ".join(part.split()) for part in NOT_WORDS.sub("", text).split("\n\n"))
    found = next(filter(None, map(SENTENCE.match, (*paragraphs, *COMMENT.findall(text)[1:]))), None)
    return found[0] if found else ""


if __name__ == "__main__":
    main()
