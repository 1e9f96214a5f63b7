"""The keys of our own object in a configuration file, each with how it is read and what it says: data only.

Lives here: those that are options of the command line, too, and those that are not. Must not: read anything. `reading`
looks them up, and the end of `docs/configuration.md` is made from them; those that clients have are in `keys`.
"""

from __future__ import annotations

from typing import Final

from dragoman.options import CHILD, REVISIONS, SCOPE, SESSIONS, UPSTREAM, Option

_LIST_TIMEOUT: Final = Option(
    "", "seconds", "how long a merged list waits for a slow server", key="listTimeout", field="list_timeout_s"
)

ROUTER_KEYS: Final = (
    Option("", "text", "what clients are told that this server is called", key="name", field="name"),
    Option(
        "",
        ("clash", "always"),
        "`clash`: a name is prefixed with that of its server only where two servers have it; `always`: each is",
        key="prefix",
        field="prefix",
    ),
    Option("", ("_", "__", "-"), "what stands between prefix and name", key="separator", field="separator"),
    _LIST_TIMEOUT,
    Option(
        "",
        "seconds",
        "how long a client that opens a session waits for servers that are slow to start (default: as long as a "
        "list, 4 at most); it is not told of capabilities that only a later one has",
        key="openTimeout",
        field="open_timeout_s",
    ),
    *(option for option in SESSIONS if option.key),
    Option("", "count", "how many entries a page of a merged list has", key="pageSize", field="page_size"),
    Option(
        "",
        "rules",
        "who may see and use what, with --listen ([rules](guard.md#who-may-use-what)); absent: everybody everything",
        key="rules",
        field="rules",
    ),
)
"""The keys about all servers of a configuration file together."""

SERVER_KEYS: Final = (
    Option(
        "",
        "text",
        "what its names begin with where they need a prefix, in place of its own name",
        key="prefix",
        field="prefix",
    ),
    _LIST_TIMEOUT,
    *(option for option in (*REVISIONS, *SESSIONS, *SCOPE, *CHILD, *UPSTREAM) if option.key),
    Option(
        "",
        "headers",
        "HTTP headers to send along with each request to its URL, made anew for each: `${file:PATH}` is what is in a "
        "file, relative to this one, and `${NAME}` a variable ([middleware](middleware.md#headers))",
        key="headers",
        field="headers",
    ),
    Option(
        "",
        "sign-in",
        "how to sign in to its URL, where it wants a token: keys like the options of `dragoman proxy` "
        "([signing in](sign-in.md#options)). False: nobody is asked",
        key="oauth",
        field="sign_in",
    ),
)
"""The keys about one of them."""
