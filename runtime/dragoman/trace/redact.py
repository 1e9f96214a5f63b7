"""What a trace must not repeat: values that look like secrets.

Lives here: which names and texts look so, and taking out what they hold. Must not: know frames. Used by `lines`.

Names decide, wherever they are in the JSON: `authorization`, `password`, `apiKey` and the like, written in any way. All
that stands under `headers` goes, whatever it is called. Under a name in the `properties` of a JSON Schema stands a
schema and no secret. In texts, what follows such a name and `:` or `=`, credentials of HTTP, and passwords in URLs go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoman.transports.secrecy import is_secret_name

REDACTED: Final = "[redacted]"
TOO_DEEP: Final = "[nested too deep]"

_PIECE: Final = 16 * 1024
_CUT_WITHIN: Final = 4 * 1024

_NAME: Final = (  # whatever stands before it: to look for that takes long in a hostile text
    r"(?:authorization|passw(?:or)?d|passphrase|secrets?|credentials?|cookies?"
    r"|(?:api|access|private|signing)[-_ ]?key|(?<!progress)(?<!progress[-_])token)"
)
_AFTER_NAME: Final = re.compile(
    rf'(?i)({_NAME}(?:\\?["\'])?\s{{0,8}}[:=]\s{{0,8}}(?:\\?["\'])?)((?:\\.|[^\s"\'\\,;&])+)'
)
_HINT: Final = re.compile(r"(?i)authoriz|passw|passp|secret|credential|cookie|key|token|bearer|basic|://")
"""What a text has that holds anything of that kind: most texts are left alone after one look."""

_SCHEME: Final = re.compile(r"(?i)\b((?:bearer|basic)\s{1,8})(?![\w-]{1,40}=\\?\")[\w.~+/=-]{6,}")
"""What a challenge says, `Bearer error="…"`, is no token."""

_IN_URL: Final = re.compile(r"(://[^/\s:@]{0,200}:)[^/\s@]{1,500}(?=@)")


_HARMLESS: Final = frozenset(
    f"{prefix}{name}"
    for prefix, names in {
        "": "allow connection date expect host keep-alive origin pragma retry-after server upgrade user-agent vary via",
        "accept": " -encoding -language",
        "cache-": "control",
        "content-": "encoding language length type",
        "mcp-": "method name protocol-version",
        "sec-fetch-": "dest mode site",
        "sec-websocket-": "protocol version",
        "transfer-": "encoding",
        "access-control-": "allow-headers allow-methods allow-origin expose-headers request-headers request-method",
    }.items()
    for name in names.split(" ")
)
"""Headers of which the value is shown, without what looks like a secret in it; of all others only the name. Those that
repeat arguments are not among them: an argument that is a secret may have a header of any name."""

_SAID: Final = ("error", "error_description", "realm", "scope")
_CHALLENGED: Final = re.compile(r'(?<![\w-])([\w-]+)\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",]+)')
_BLOB: Final = re.compile(r"(?i)\b(negotiate|ntlm|basic|bearer)\s+[\w.~+/-]+=*(?=\s*(?:,|$))")


def redact(value: Any) -> Any:
    """Return JSON without what looks like a secret; the value given is not changed.

    Of what is nested too deep to be looked through, `TOO_DEEP` is left.
    """
    try:
        return _redact(value)
    except RecursionError:
        return TOO_DEEP


def _redact(value: Any) -> Any:
    match value:
        case dict():
            return {name: _redact_member(name, member) for name, member in value.items()}
        case list():
            return [_redact(item) for item in value]
        case str():
            return redact_text(value)
        case _:
            return value


def redact_text(text: str) -> str:
    """Return a text without what looks like a secret in it."""
    if len(text) <= _PIECE:
        return _redact_piece(text)
    return "".join(_redact_piece(piece) for piece in _split(text))


def _split(text: str) -> Iterator[str]:
    """Cut a long text between what belongs together: one look at all of it would hold up every other thread."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        cuts = (text.rfind(sign, end - _CUT_WITHIN, end) for sign in "\n,;{}")
        end = max((cut + 1 for cut in cuts if cut >= 0), default=end)
        yield text[start:end]
        start = end


def _redact_piece(text: str) -> str:
    if _HINT.search(text) is None:
        return text
    text = _IN_URL.sub(rf"\1{REDACTED}", _SCHEME.sub(rf"\1{REDACTED}", text))
    return _AFTER_NAME.sub(_redact_match, text)


def redact_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return headers of HTTP of which only those are shown that are known to hold no secret.

    Args:
        headers: By their names in small letters.
    """
    return {name: _redact_header(name, str(value)) for name, value in headers.items()}


def _redact_header(name: str, value: str) -> str:
    if name == "www-authenticate":  # its scheme is no token, and says what was wrong with the one that came
        return _CHALLENGED.sub(
            lambda found: found[0] if found[1].lower() in _SAID else f'{found[1]}="{REDACTED}"',
            _BLOB.sub(rf"\1 {REDACTED}", value),
        )
    return redact_text(value) if name in _HARMLESS else REDACTED


def _redact_member(name: str, member: Any) -> Any:
    if name == "properties" and isinstance(member, dict):
        return {key: _redact(one) if isinstance(one, dict) else _redact_member(key, one) for key, one in member.items()}
    if name.lower() == "headers" and isinstance(member, dict | list):
        return _hide(member)
    return _hide(member) if is_secret_name(name) else _redact(member)


def _hide(value: Any) -> Any:
    """Return a value with nothing left of it but its shape."""
    match value:
        case dict():
            return {name: _hide(member) for name, member in value.items()}
        case list():
            return [_hide(item) for item in value]
        case None | bool():
            return value
        case _:
            return REDACTED


def _redact_match(found: re.Match[str]) -> str:
    if REDACTED.startswith(found[2][:9]) or found[2].lower() in ("bearer", "basic"):
        return found[0]
    return f"{found[1]}{REDACTED}"
