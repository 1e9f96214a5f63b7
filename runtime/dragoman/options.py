"""What can be decided from outside: each option once, with its flag, its key in a configuration file, and its words.

Lives here: tables alone. `cli.options` makes flags of them, `config.reading` reads keys by them, and the reference in
the documentation is written from them. Those of signing in are in `signin.settings`.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman_spec.record import record


@record
class Option:
    """One option.

    Attributes:
        name: The flag without its dashes; empty where there is none.
        kind: How its value is read: a word that `values.READERS` knows, or the words it may be.
        about: What it says.
        default: What counts without it; an empty tuple where it may be repeated, False for a switch.
        placeholder: What stands for its value in the help, if not what stands for all of its kind.
        note: What the default means.
        dest: What the command line calls it, if that does not follow from the flag.
        key: Its name in a configuration file; empty where it has none.
        field: Of the settings that a configuration file makes, if it is not called like the flag.
    """

    name: str
    kind: str | tuple[str, ...]
    about: str
    default: Any = None
    placeholder: str = ""
    note: str = ""
    dest: str = ""
    key: str = ""
    field: str = ""

    @property
    def argument(self) -> str:
        """What the command line calls it."""
        return self.dest or self.name.replace("-", "_")

    @property
    def setting(self) -> str:
        """The field that its key makes."""
        return self.field or self.argument


REVISIONS: Final = (
    Option(
        "client-revision",
        "handshake-revision",
        "revision to speak with a client that has a handshake",
        "auto",
        note="which is what the client asks for",
    ),
    Option(
        "server-revision",
        "revision",
        "revision to offer the server first",
        "auto",
        note="which is the newest, then what the client asks for",
        key="revision",
        field="revision",
    ),
)

TRANSLATION: Final = (
    Option(
        "profile",
        ("strict", "minimal"),
        "strict drops every field that the target revision does not name, minimal only what validity needs",
        "strict",
    ),
    Option("no-rule", "rule", "turn off a repair rule", (), dest="no_rules"),
    Option("rule", "rule", "turn on a repair rule that is off by default", (), dest="more_rules"),
)

SESSIONS: Final = (
    Option(
        "on-loss",
        ("warn", "refuse", "refuse-all", "silent"),
        "what to do about a frame that cannot be carried whole: log a warning; answer with an error, if what is lost "
        "changes its meaning or for any loss; or only count it",
        "warn",
    ),
    Option("init-timeout", "seconds", "how long initialisation may take", 60),
    Option(
        "drain-timeout",
        "seconds",
        "after the client has closed its side, or SIGTERM has come to a proxy with --listen, keep answering what was "
        "asked before for S seconds",
        30,
    ),
    Option(
        "request-timeout",
        "seconds",
        "how long a request may go without an answer or progress, before it is given up (no limit if absent)",
        key="requestTimeout",
        field="request_timeout_s",
    ),
    Option(
        "request-ceiling",
        "seconds",
        "give up requests that are not answered within S seconds, whatever progress they make (no limit if absent)",
    ),
    Option(
        "restarts",
        "number",
        "if a server ends while clients use it, start it again, up to N times in a row: sessions go on, and the "
        "requests that it had fail",
        0,
        note="their sessions end",
    ),
    Option(
        "health-interval",
        "seconds",
        "ask a server that has sent nothing for S seconds whether it is there; if nothing comes for another S seconds, "
        "it is lost (not asked if absent)",
    ),
    Option(
        "no-retry-older",
        "switch",
        "do not offer another revision to a server that rejects the first one explicitly",
        False,
    ),
)

KNOWN: Final = Option(
    "no-era-cache",
    "switch",
    "do not remember, in the user's cache directory, whether a server has a handshake, or what a slow one said, and "
    "use nothing that was remembered",
    False,
)

GREETING: Final = Option(
    "no-greeting",
    "switch",
    "wait for a server that takes more than a second to start; without this, clients are answered meanwhile from what "
    "it said the last time",
    False,
)

LOG_LEVEL: Final = Option(
    "log-level",
    ("debug", "info", "warning", "error", "critical"),
    "the least important lines of the log that go to stderr",
    "warning",
)

WATCHING: Final = (
    Option(
        "status",
        "text",
        "make a Unix socket at PATH, where `dragoman status PATH` reads the status of the proxy and its servers",
        placeholder="PATH",
    ),
    LOG_LEVEL,
    Option(
        "trace",
        "text",
        "append every frame, before and after translation, to a file or a pipe, one JSON object a line; secrets that "
        "are recognised as such are left out",
        placeholder="FILE",
    ),
    Option(
        "metrics-listen",
        "address",
        "count calls, sessions, losses and more, and give the figures to Prometheus at this address, path /metrics "
        "(usual: http://127.0.0.1:9464)",
    ),
    Option(
        "access-log",
        "text",
        "append a line for each call, and for each session that begins or ends, to a file or a pipe; - is stdout",
        placeholder="FILE|-",
    ),
    Option(
        "otel",
        "switch",
        "record two spans for each call, and send them and the figures of --metrics-listen by OpenTelemetry, as its "
        "variables say (OTEL_EXPORTER_OTLP_ENDPOINT and the like)",
        False,
    ),
    Option("log-file", "text", "append the log to a file or a pipe, in place of stderr", placeholder="FILE"),
    Option("log-format", ("text", "json"), "how a line of the log and of the access log looks", "text"),
)

PAGE: Final = (
    Option(
        "inspect",
        "page",
        "show every frame, before and after translation, on a page in the browser, at http(s)://HOST:PORT (default "
        "address: http://127.0.0.1:6300, or another port if that is taken); its address, with a key, goes to stderr",
    ),
    Option("open", "switch", "open the page of --inspect in the browser", False),
    Option(
        "inspect-memory", "size", "how much of what was seen the page of --inspect keeps; then the oldest goes", "64m"
    ),
    Option(
        "inspect-anywhere",
        "switch",
        "let --inspect show its page without TLS at an address that other machines reach, too",
        False,
    ),
)

_AS_CODE: Final = (
    "an importable module or FILE.py, a colon and the name, with arguments where it has to be made, as "
    "'dragoman.middlewares:RateLimit(per_minute=60)'; the first is the outermost"
)

MIDDLEWARE: Final = (
    Option("middleware", "text", f"put your own code around each request: {_AS_CODE}", (), "MODULE:NAME"),
    Option("notice-middleware", "text", f"put your own code around each notification: {_AS_CODE}", (), "MODULE:NAME"),
)

TLS: Final = (
    Option("tls-cert", "file", "certificate chain in PEM, for what listens at https://"),
    Option("tls-key", "file", "its key, if not in the same file"),
)

LISTEN: Final = (
    Option(
        "listen",
        "address",
        "serve clients at http(s)://HOST:PORT, rather than one on stdin and stdout; port 0 picks a free one",
    ),
    Option("mcp-path", "path", "where Streamable HTTP is served", "/mcp"),
    Option(
        "paths",
        "switch",
        "serve each server of --config at a path of its own, too: /NAME/mcp",
        False,
    ),
    Option("sse-path", "path-or-none", "where HTTP+SSE is served, empty for none", "/sse"),
    Option("ws-path", "path-or-none", "where WebSocket is served, empty for none", "/ws"),
    Option("allow-host", "host", "a name by which clients may reach us, beside loopback names; * for any", ()),
    Option("allow-origin", "origin", "a page that may call us, as scheme://host[:port]; port * for any", ()),
    Option(
        "auth-token-file",
        "file",
        "secrets; clients must send one of them: one a line, or NAME SECRET (or one in $DRAGOMAN_AUTH_TOKEN)",
    ),
    Option(
        "trust-callers",
        "state-keys",
        "clients are proxies that say with --tell-callers whose each request is, sealed with a key of this file",
    ),
    *TLS,
    Option("max-body", "size", "the longest message of a client", "16m"),
    Option(
        "max-memory", "size", "what all unfinished messages of clients may hold together, one client half of it", "256m"
    ),
    Option("max-connections", "count", "how many connections may be open at once", 2048),
    Option("max-sessions", "count", "how many sessions may be open at once", 100),
    Option("max-streams", "count", "how many requests of a session may be under way at once", 64),
    Option(
        "shutdown-delay",
        "seconds",
        "after SIGTERM, serve everybody for S seconds more while /readyz says 503, so that balancers send nobody any "
        "more, before new sessions are refused (refused at once if absent)",
    ),
    Option("workers", "count", "serve in N processes, which share the port and act as one", 1),
    Option(
        "store",
        "text",
        "where instances find each other, so that each takes requests for what another one has: a folder, for those of "
        "one machine, or redis://HOST (Redis, Valkey; needs --instance-listen)",
        placeholder="DIR|URL",
    ),
    Option(
        "instance-listen",
        "address",
        "where the other instances reach this one, as http://HOST:PORT; let only them reach it",
    ),
    Option(
        "store-events",
        "switch",
        "keep in --store, too, what clients may resume with Last-Event-ID, sealed with the key of --state-key-file, so "
        "that they can when an instance is gone",
        False,
    ),
    Option("session-idle", "seconds", "after how many idle seconds a session ends", 1800),
    Option("header-timeout", "seconds", "how long the headers of a request may take", 10),
    Option("body-timeout", "seconds", "how long the body of a request may take", 30),
    Option("stall-timeout", "seconds", "how long a client may read nothing of what it is sent", 60),
    Option("sse-poll", "seconds", "close streams after S seconds; clients that can come back do so"),
    Option(
        "answers",
        ("auto", "json", "sse"),
        "how requests are answered where the client takes both",
        "auto",
        note="which is JSON if the answer is quick and nothing else has to be said",
    ),
    Option("post-sse", "switch", "let a POST open the stream of HTTP+SSE too", False),
)

GUARD: Final = (
    Option(
        "auth-issuer",
        "text",
        "let in clients that bring a token of this authorization server: a JWT that one of its keys has signed",
        placeholder="URL",
    ),
    Option(
        "auth-audience",
        "text",
        "whom a token has to be for, as `aud` says; one of these (default: the URL of --resource-url)",
        (),
        "AUDIENCE",
    ),
    Option(
        "auth-client",
        "text",
        "take a token for anybody if this client was given it (`azp` or `client_id`), from issuers that do not say "
        "whom a token is for",
        (),
        "ID",
    ),
    Option("auth-scope", "text", "what each token has to be good for", (), "SCOPE"),
    Option(
        "auth-implies",
        "implied",
        "a token that is good for BROAD is good for each NARROW, too",
        (),
        "BROAD=NARROW[,NARROW]",
    ),
    Option(
        "auth-jwks",
        "text",
        "where the keys of the issuer are (default: its metadata says so)",
        placeholder="URL|FILE",
    ),
    Option(
        "auth-introspection",
        "text",
        "ask here about each token, in place of looking for a signature (RFC 7662)",
        placeholder="URL",
    ),
    Option("auth-introspection-client", "text", "the client id to ask with", placeholder="ID"),
    Option("auth-introspection-secret-file", "file", "the secret that goes with it"),
    Option(
        "auth-mode",
        ("required", "optional"),
        "whether clients without a token are refused, or let in as nobody",
        "required",
    ),
    Option("auth-ca-file", "certificates", "the authority that signed the certificate of the issuer, as PEM"),
    Option(
        "auth-forward",
        "switch",
        "send the token of a client on to the server at --url, and nowhere else; without this, no token goes anywhere",
        False,
    ),
    Option(
        "resource-url",
        "text",
        "the URL of the proxy as clients know it, behind a reverse proxy (default: by which name they call it)",
        placeholder="URL",
    ),
)
"""Which tokens are taken."""

SCOPES: Final = ("client", "shared", "principal")

SCOPE: Final = (
    Option(
        "scope",
        SCOPES,
        "a server for each client session, one shared by all, or one for each principal, by its secret",
        "client",
    ),
    Option("server-idle", "seconds", "close a shared server after S seconds without use", 60),
    Option(
        "tell-callers",
        "state-keys",
        "the server is another proxy: tell it whose each request is, sealed with the first key of this file, which it "
        "has in --trust-callers; no name is told (needs --url)",
        key="tellCallers",
    ),
)

UPSTREAM: Final = (
    Option(
        "url",
        "url",
        "http(s): Streamable HTTP, or HTTP+SSE if it is that; ws(s): WebSocket; $VARIABLE comes from the environment",
    ),
    Option(
        "header",
        "header",
        "send this header along, to this server only; also as 'NAME: VALUE'; $VARIABLE in VALUE comes from the "
        "environment, where other users of the machine do not see it",
        (),
        dest="headers",
    ),
    Option(
        "upstream",
        ("auto", "streamable-http", "sse"),
        "the transport for an http URL",
        "auto",
        note="which tries Streamable HTTP first",
    ),
    Option("ca-file", "certificates", "the authority that signed the certificate of its URL, as PEM", key="caFile"),
    Option("client-cert", "certificates", "our own certificate, for a URL that wants one, as PEM", key="clientCert"),
    Option("client-key", "file", "the key of that certificate, if it is in a file of its own", key="clientKey"),
    Option(
        "proxy",
        "proxy",
        "the HTTP proxy on the way to its URL, or none (default: what HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY "
        "say; never for this machine)",
        key="proxy",
    ),
    Option("insecure", "switch", "do not check the certificate of its URL at all", False, key="insecure"),
    Option("connect-timeout", "seconds", "how long a connection to the server may take", 10),
    Option("idle-timeout", "seconds", "how long a server may send nothing at all while it owes an answer", 300),
    Option("no-delete", "switch", "do not tell the server when a session is over", False),
    Option("no-sign-in", "switch", "ask nobody to sign in: it has to do without a token", False),
)

WAY: Final = tuple(option for option in UPSTREAM if option.name in ("ca-file", "proxy", "insecure"))
"""How a server is reached, by commands that are no proxy."""

CHILD: Final = (
    Option(
        "env",
        "variable",
        "give the server this variable; without VALUE, take it from the proxy's environment, where other users of the "
        "machine cannot see it",
        (),
        dest="variables",
    ),
    Option(
        "inherit-env",
        ("all", "safe", "none"),
        "which other variables of the proxy's environment a command gets: all but DRAGOMAN_*, those that are not "
        "secret (HOME, PATH, LANG and the like), or none (default: all; with --listen safe)",
        placeholder="all|safe|none",
        key="inheritEnv",
    ),
    Option("cwd", "directory", "run the server in this directory (default: the current one)"),
)

ERAS: Final = (
    Option(
        "questions",
        ("auto", "task", "park", "replay", "refuse"),
        "how a client is asked if the server has a question in the middle of a call: in a task, by parking the call "
        "until the client comes back, by making it twice, or not at all",
        "auto",
        note="which is a task if the client takes tasks, else parking",
    ),
    Option(
        "repeatable",
        "text",
        "a tool that may run twice so that its question can be asked, beside those whose annotations say so",
        (),
        "TOOL",
    ),
    Option("answer-timeout", "seconds", "how long a parked call waits for its client to come back", 600),
    Option("max-parked", "count", "how many calls, and how many tasks, may wait for clients", 256),
    Option("task-ttl", "seconds", "how long a task is kept from its beginning", 3600),
    Option(
        "roots-ttl",
        "seconds",
        "how long the roots that a client has named are given to servers without asking it again (default: not at all)",
    ),
    Option(
        "state-key-file",
        "state-keys",
        "64 hexadecimal digits that seal what clients carry for us, so that it is good after a restart and in other "
        "proxies with this key: openssl rand -hex 32; keys on further lines only open what they sealed before (made "
        "at start if absent)",
    ),
    Option(
        "server-name",
        "text",
        "what clients are told that the server is called, if it does not say; states are good under this name alone",
        placeholder="NAME",
    ),
)

FILE: Final = (
    Option(
        "config",
        "text",
        "several servers as one, in place of COMMAND: the file in which a client names its servers",
        placeholder="FILE",
    ),
    Option(
        "server",
        "text",
        "only this server of the file, as if its command or URL had been given",
        placeholder="NAME",
    ),
)
