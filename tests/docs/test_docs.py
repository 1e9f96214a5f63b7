"""The documentation: links lead somewhere, Python examples and shell sessions give what they show."""

import ast
import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import rules

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("schema/*.md")])
LINK = re.compile(r"\[[^\]]*\]\((?!https?://|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CELLS = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"`[^`\n]*`")
PROMPT = "$ "
REAL_PEERS = ("old/bin/", "current/bin/")
# What is said only where the machine is slow.
WAITED = re.compile(r"^WARNING dragoman.waiting: .*\n", re.MULTILINE)
IN_BACKGROUND = " &\n"
COLUMNS = 120
# These are written by programs.
WRITTEN = {"compatibility.md", "configuration.md", "lifecycle.md", "options.md", "pairs.md"}
OWN_PAGES = [page for page in ROOT.glob("docs/**/*.md") if page.name not in WRITTEN and page.parent.name != "steps"]
# What the shell sessions read: each file as it is shown by `cat` before it is used.
SHOWN_FILE = re.compile(r"^\$ cat (\S+)$")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text(encoding="utf-8")) if found == language]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual viewers make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", BLOCK.sub("", page.read_text(encoding="utf-8")))
    broken = []
    for path, anchor in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor[1:] not in anchors(target)):
            broken.append(path + anchor)
    assert broken == []


@pytest.mark.parametrize(
    "page",
    OWN_PAGES,
    ids=name,
)
def test_lines_of_text_fit_a_screen(page: Path) -> None:
    lines = BLOCK.sub("", page.read_text(encoding="utf-8")).splitlines()
    assert [line for line in lines if len(line) > COLUMNS and not line.startswith("|")] == []


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "pycon")], ids=name)
def test_python_examples_of_a_page_give_what_they_show(page: Path) -> None:
    text = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, name(page), name(page), 0)
    report: list[str] = []
    failures, examples = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert (failures, examples > 0) == (0, True), "".join(report)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_python_programs_of_a_page_compile_and_find_what_they_import(page: Path) -> None:
    for block in blocks(page, "python"):
        imports = [node for node in ast.parse(block).body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), name(page), "exec"), {})


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT and blocks(page, "console")], ids=name)
def test_shell_sessions_of_a_page_give_what_they_show(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "console"):
        if IN_BACKGROUND in block:
            continue  # `test_over_http` has these
        for command, expected in conversation(block):
            if command.startswith(REAL_PEERS):
                continue  # `tests/peers` has these
            shown = SHOWN_FILE.match(PROMPT + command)
            if shown and not (tmp_path / shown[1]).exists():
                (tmp_path / shown[1]).write_text(expected, encoding="utf-8")
            found = shell(command, tmp_path)
            assert matches(expected, found), describe(command, expected, found)


def conversation(block: str) -> list[tuple[str, str]]:
    """Split a shell session into commands and what each printed."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def shell(command: str, directory: Path) -> str:
    """Run a command as a reader would, with the programs of this environment first; return what a terminal shows."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        ["sh", "-c", command], cwd=directory, env=environment, capture_output=True, text=True, timeout=300
    )
    return done.stdout + WAITED.sub("", done.stderr)


def matches(expected: str, found: str) -> bool:
    """Compare output; a line of three dots stands for any lines."""
    pattern = re.escape(expected).replace(re.escape("...\n"), r"(?:.*\n)*?")
    return re.fullmatch(pattern, found) is not None


def describe(command: str, expected: str, found: str) -> str:
    """Say which lines of a page a command did not print."""
    missing = [line for line in expected.splitlines() if line != "..." and line not in found.splitlines()]
    return f"mend the page or the command {command!r}, which did not print {missing}; it printed:\n{found}"


# What a page says twice, or a docstring says too, can go: nobody keeps more words than these true.
WORDS = 37_250
BY_PROGRAMS = {
    *("check-rules.md", "commands.md", "compatibility.md", "configuration.md", "drafts.md", "known-defects.md"),
    *("noticed.md", "options.md", "pairs.md", "repair-rules.md", "verbs.md"),
}


def test_pages_that_people_write_do_not_grow_without_end() -> None:
    pages = [page for page in ROOT.glob("docs/**/*.md") if page.parent.name not in ("decisions", "steps")]
    words = {page: len(page.read_text("utf-8").split()) for page in pages if page.name not in BY_PROGRAMS}
    assert sum(words.values()) <= WORDS, "say it in fewer words, or raise the bound for what is new"


def test_the_page_of_repair_rules_has_every_rule() -> None:
    assert rules.PAGE.read_text("utf-8") == rules.text(), "run `python -m tests.docs.rules`"


def test_a_wrong_example_is_noticed() -> None:
    assert (matches("a\n...\nb\n", "a\nx\ny\nb\n"), matches("a\n", "b\n")) == (True, False)


DECISIONS = sorted(page for page in ROOT.glob("docs/decisions/*.md") if page.name != "README.md")
# `core/calls`, `codegen/overlays`, `core.around`: modules and folders, from the package or from the project.
PARTS = sorted({path.stem for path in (ROOT / "runtime" / "dragoman").iterdir()} | {"bench", "codegen", "tests"})
MODULE = re.compile(rf"`((?:{'|'.join(PARTS)})(?:[./][a-z_]+)+?)(?:\.py)?`")
INTERNALS = [ROOT / "docs" / "internals" / page for page in ("architecture.md", "where.md")]
NO_MODULES = {"server/discover", "config/toml", "config/yaml"}  # a method, and files of other programs


@pytest.mark.parametrize("page", [*DECISIONS, *INTERNALS], ids=name)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    modules = {module.replace(".", "/") for module in MODULE.findall(page.read_text("utf-8"))} - NO_MODULES
    places = [ROOT, ROOT / "runtime" / "dragoman", ROOT / "tests" / "docs"]
    found = {
        module for module in modules for place in places for end in ("", ".py") if (place / (module + end)).exists()
    }
    assert modules - found == set()


def test_every_decision_is_found_by_its_subject() -> None:
    listed = LINK.findall((ROOT / "docs" / "decisions" / "README.md").read_text("utf-8"))
    assert sorted(path for path, _ in listed) == [page.name for page in DECISIONS]


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [int(page.name.split("-")[0]) for page in DECISIONS]
    assert len(set(numbers)) == len(numbers)
    titles = [page.read_text("utf-8").split("\n", 1)[0] for page in DECISIONS]
    assert [title for number, title in zip(numbers, titles, strict=True) if not title.startswith(f"# {number}. ")] == []
