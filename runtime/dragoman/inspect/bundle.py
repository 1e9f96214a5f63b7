"""The page as one HTML file that needs nothing else: no server, no network, no other file.

Lives here: the list of the page's files, and joining them. Must not: know what the page does.

The modules are joined in the order in which they need each other, each in a function of its own, so that their names do
not meet. A policy in the file itself lets run what was here when it was made, by its hash, and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Final

MODULES: Final = (
    "dom.js",
    "difference.js",
    "why.js",
    "frames.js",
    "messages.js",
    "peers.js",
    "joining.js",
    "model.js",
    "filter.js",
    "sieve.js",
    "source.js",
    "share.js",
    "json-view.js",
    "http-view.js",
    "frame-row.js",
    "frame-list.js",
    "frame-view.js",
    "session-view.js",
    "time-view.js",
    "share-view.js",
    "main.js",
)
"""In an order in which each needs only those before it."""

PAGE_FILES: Final = ("index.html", "style.css", "icon.svg", *MODULES)

DATA: Final = b"<!--data-->"
"""Where the data goes: a script element of the type `application/json` with the id `recorded`."""

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const|let) (\w+))", re.MULTILINE)


def bundle(page: Mapping[str, bytes]) -> bytes:
    """Join the files of the page.

    Args:
        page: The files, by name.

    Returns:
        HTML with `DATA` in it once.
    """
    script = "\n".join(_wrap(name, page[name].decode()) for name in MODULES)
    style = page["style.css"].decode()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    icon = base64.b64encode(page["icon.svg"]).decode()
    html = page["index.html"].decode()
    html = html.replace(
        '<link rel="stylesheet" href="/page/style.css">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{style}</style>',
    )
    html = html.replace('href="/page/icon.svg"', f'href="data:image/svg+xml;base64,{icon}"')
    module = '<script type="module" src="/page/main.js"></script>'
    return html.replace(module, f"{DATA.decode()}<script>{script}</script>").encode()


def _wrap(name: str, text: str) -> str:
    """Make a module a function that is called at once, and gives what the module exports."""
    wanted = [(names.replace(" as ", ": "), _variable(module)) for names, module in _IMPORT.findall(text)]
    exported = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    head = "".join(f"const {{{names}}} = {module};\n" for names, module in wanted)
    return f"const {_variable(name)} = (() => {{\n{head}{body}\nreturn {{{', '.join(exported)}}};\n}})();"


def _variable(name: str) -> str:
    return "of_" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
