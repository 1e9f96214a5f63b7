"""The reference of the Python API, from signatures and docstrings: a page for each module that programs import.

Lives here: which modules those are, and how a function, a class or a constant looks. Read with griffe, so nothing is
imported. A name that one of our pages imports and that is on none of these pages fails `tests/docs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import griffe

from website.sources import ROOT

FOLDER: Final = "api"


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its name, what it is about, and which modules or names it shows, after `:` where a name really is."""

    name: str
    about: str
    shows: tuple[str, ...]


CLIENT: Final = (
    "connect: client.connect.connect",
    "connect_sync: client.sync.connect_sync",
    "client.connect.Connection",
)
PROXY: Final = ("proxy.ProxyConfig", "proxy.Proxy", "pool.Scope", "pool.UpstreamPool")
TRANSPORTS: Final = ("base", "memory", "frame_link", "stdio", "spawn", "lines")
HTTP: Final = ("http.app.HttpFront", "http.serve", "http.config")
UPSTREAM: Final = ("upstream.connect", "upstream.config", "upstream.mounted.mount")

PAGES: Final = (
    Page(
        "dragoman_spec", "models, converters and facts of every revision", ("dragoman_spec", "dragoman_spec.losses.At")
    ),
    Page("client", "a session with a server", (*CLIENT, "client.client.Client", "client.subscriptions")),
    Page("server", "a server of Python functions", ("server",)),
    Page("proxy", "a proxy in your own program", (*PROXY, "router", "trace.trace.Trace")),
    Page("middleware", "your own code around calls", ("middleware", "middlewares")),
    Page("config", "configuration files", ("config",)),
    Page("testing", "tests of a server", ("testing", "check.check")),
    Page(
        "transports",
        "how bytes move",
        (*(f"transports.{name}" for name in (*TRANSPORTS, *HTTP, *UPSTREAM)), "core.envelope.Frame"),
    ),
    Page("errors", "what can be raised", ("errors",)),
)

SAYS_MUCH: Final = re.compile(r"[\w.]+|'[^']*'|[\w.\[\], |]+")
"""Values that are shown: a type, a number, a string; a call says nothing to a reader."""


def load() -> Any:
    """Return both packages, read and not imported."""
    loader = griffe.GriffeLoader(
        search_paths=[ROOT / "runtime", ROOT / "generated"],
        docstring_parser="google",
        docstring_options={"warnings": False},
    )
    packages = {name: loader.load(name) for name in ("dragoman", "dragoman_spec")}
    loader.resolve_aliases()
    return packages


def render(packages: Any) -> dict[str, str]:
    """Return the pages by their places in the site, the overview first."""
    overview = ["# Python API", "", "Made from the docstrings. Each name is imported from where its heading says.", ""]
    overview += ["| page | about |", "|---|---|"]
    overview += [f"| [{page.name}]({page.name}.md) | {page.about} |" for page in PAGES]
    found = {f"{FOLDER}/index.md": "\n".join(overview) + "\n"}
    for page in PAGES:
        lines = [f"# {page.name if '_' in page.name else f'dragoman: {page.name}'}", "", f"{capital(page.about)}.", ""]
        for path in page.shows:
            lines += section(packages, path)
        found[f"{FOLDER}/{page.name}.md"] = mend("\n".join(lines))
    return found


def places(packages: Any) -> dict[Path, str]:
    """Return where each module is described that is a page, or that one name of a page comes from, by its file."""
    found: dict[Path, str] = {}
    for page in PAGES:
        for path in page.shows:
            one = look_up(packages, path.partition(": ")[2] or path)
            found.setdefault(one.filepath, f"{FOLDER}/{page.name}.md")
    return found


def look_up(packages: Any, path: str) -> Any:
    """Return a module or a name by its path below `dragoman`, or from `dragoman_spec` on."""
    found = packages["dragoman"]
    for name in path.removeprefix("dragoman_spec").split("."):
        found = found[name] if name else packages["dragoman_spec"]
    return found


def section(packages: Any, path: str) -> Iterator[str]:
    """Give what is said of a module, or of one name."""
    shown, _, real = path.partition(": ")
    found = look_up(packages, real or shown)
    whole = shown if shown.startswith("dragoman") else f"dragoman.{shown}"
    if not found.is_module:
        yield from entry(found, whole)
        return
    yield from members(found, whole)


def members(module: Any, path: str) -> Iterator[str]:
    """Give the public names of a module in the order in which it has them, those of `__all__` if there is one."""
    names = [str(name) for name in module.exports] if module.exports else list(module.members)
    for name in names:
        found = module.members[name]
        is_ours = bool(module.exports) or not found.is_alias
        target = found.final_target if found.is_alias and is_ours else found
        if is_ours and not name.startswith("_") and not target.is_module and target.docstring:
            yield from entry(target, f"{path}.{name}")


def entry(found: Any, path: str) -> Iterator[str]:
    """Give a function, a class or a constant, below a heading that says where it is imported from."""
    module, _, name = path.rpartition(".")
    yield from (f"## {name} {{ #{path} }}", "", f"`from {module} import {name}`", "")
    yield from describe(found)
    if found.is_class:
        for one in found.members.values():
            if not one.name.startswith("_") and one.docstring and (one.is_function or "property" in one.labels):
                yield from (f"### {name}.{one.name} {{ #{path}.{one.name} data-search-exclude }}", "")
                yield from describe(one)


def describe(found: Any) -> Iterator[str]:
    """Give the signature and the docstring."""
    is_data = bool({"dataclass"} & found.labels)
    if found.is_function or (found.is_class and "__init__" in found.members and not is_data):
        of = found if found.is_function else found.members["__init__"]
        yield from ("```python", signature(of, found.name), "```", "")
    elif found.is_attribute and found.annotation and "property" in found.labels:
        yield from (f"`{found.annotation}`", "")
    elif found.is_attribute and found.value is not None and SAYS_MUCH.fullmatch(str(found.value)):
        yield from ("```python", f"{found.name} = {found.value}", "```", "")
    for part in found.docstring.parsed if found.docstring else ():
        yield from SHOWN[part.kind.value](part.value, found) if part.kind.value in SHOWN else ()


def signature(function: Any, name: str) -> str:
    """Return how a function is called, a parameter a line if one line is too long."""
    parts: list[str] = []
    kinds = [parameter.kind.value for parameter in function.parameters]
    for number, parameter in enumerate(function.parameters):
        if parameter.name in ("self", "cls"):
            continue
        kind = kinds[number]
        if kind == "keyword-only" and not {"keyword-only", "variadic positional"} & set(kinds[:number]):
            parts.append("*")
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        said = f"{stars}{parameter.name}" + (f": {parameter.annotation}" if parameter.annotation else "")
        parts.append(said + (f" = {parameter.default}" if parameter.default is not None and not stars else ""))
    end = f" -> {function.returns}" if function.returns and function.name != "__init__" else ""
    begin = "async def " if "async" in function.labels else "def " if function.name != "__init__" else "class "
    line = f"{begin}{name}({', '.join(parts)}){end}"
    if len(line) <= 88:
        return line
    return f"{begin}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def show_text(value: str, found: Any) -> Iterator[str]:
    """Give paragraphs."""
    yield from (value, "")


def show_parameters(value: Any, found: Any) -> Iterator[str]:
    """Give what the arguments mean."""
    yield from ("| argument | means |", "|---|---|")
    yield from (f"| `{one.name}` | {cell(one.description)} |" for one in value)
    yield ""


def show_attributes(value: Any, found: Any) -> Iterator[str]:
    """Give the fields, with their types and defaults where the class has them."""
    yield from ("| attribute | means |", "|---|---|")
    for one in value:
        member = found.members.get(one.name)
        kind, default = getattr(member, "annotation", None), getattr(member, "value", None)
        is_shown = default is not None and "dataclass" in found.labels
        given = re.sub(r"^field\(.*?default(?:_factory)?=([^,]*|\(\)).*\)$", r"\1", str(default)) if is_shown else ""
        shown = one.name + (f": {kind}" if kind else "") + (f" = {given}" if given else "")
        yield f"| `{cell(shown)}` | {cell(one.description)} |"
    yield ""


def show_returns(value: Any, found: Any) -> Iterator[str]:
    """Give what comes back."""
    yield from (f"**Returns** {cell(' '.join(one.description for one in value))}", "")


def show_raises(value: Any, found: Any) -> Iterator[str]:
    """Give what can go wrong."""
    yield from ("| raises | when |", "|---|---|")
    yield from (f"| `{one.annotation}` | {cell(one.description)} |" for one in value)
    yield ""


def show_source(value: Any, found: Any) -> Iterator[str]:
    """Give where the protocol says so."""
    yield from (f"*{capital(value.kind.replace('-', ' '))}*: {cell(value.contents)}", "")


SHOWN: Final = {
    "text": show_text,
    "parameters": show_parameters,
    "attributes": show_attributes,
    "returns": show_returns,
    "yields": show_returns,
    "raises": show_raises,
    "admonition": show_source,
}


def cell(text: str) -> str:
    """Return a text as it stands in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def mend(text: str) -> str:
    """Return a page whose mentions of other pages are links."""
    return re.sub(r"(?<![\w/(])docs/([\w/.-]+)\.md", r"[\1](../\1.md)", text)
