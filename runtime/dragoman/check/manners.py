"""How a server takes what nobody should say, and what anybody may: unknown methods, other ids, `ping`, log levels.

Lives here: the questions that test the protocol rather than what a server offers. Must not: ask them before the rest
of a visit is over, for some servers do not survive them.
"""

from __future__ import annotations

from typing import Final

from dragoman.check.opening import offer
from dragoman.check.talk import CheckedAnswer, Talk, client_info
from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.core.declared import declares
from dragoman.core.envelope import notification_frame
from dragoman.core.methods import PING
from dragoman.core.rules.metadata import Metadata

NO_METHOD: Final = "dragoman-check/no-such-method"
NO_REVISION: Final = "1999-12-31"
NO_LEVEL: Final = "dragoman-check"
_LISTEN_S: Final = 2.0


async def try_manners(talk: Talk) -> None:
    """Ask all of it."""
    await _try_ids(talk)
    await _try_ping(talk)
    await _try_logging(talk)
    await _try_completion(talk)
    if talk.facts.era == "per_request":
        await _try_metadata(talk)
        await _try_listening(talk)
    await _try_notifications(talk)
    reply = await talk.request(NO_METHOD, {}, about="a method that does not exist")
    talk.expect_error("unknown-method", reply, METHOD_NOT_FOUND)
    await _sign_of_life(talk, "after an unknown method")


async def _sign_of_life(talk: Talk, about: str, key: bytes | None = None) -> CheckedAnswer:
    """Ask what every server answers."""
    method = PING if PING in talk.facts.local else talk.facts.lifecycle["discover"]
    return await talk.request(method, about=f"{method} {about}", key=key, repeats=True)


async def _try_ids(talk: Talk) -> None:
    await _sign_of_life(talk, "with a string as id", b'"dragoman-check-\xc3\xa9"')
    await _sign_of_life(talk, "with a string of digits as id", b'"4000"')
    await _sign_of_life(talk, "with a large number as id", b"9007199254740991")


async def _try_ping(talk: Talk) -> None:
    if PING not in talk.facts.local:
        return
    reply = await talk.request(PING)
    members = set(reply.result or {}) - {"_meta"}
    if reply.error is not None:
        talk.note("ping", reply, "an empty result")
    elif members:
        found = f"the members {', '.join(sorted(map(str, members)))[:80]}"
        talk.findings.note("ping", f"the answer to {PING}", "an empty result", found, pointer="/result")


async def _try_logging(talk: Talk) -> None:
    method = "logging/setLevel"
    if method not in talk.methods:
        await _try_logging_by_request(talk)
        return
    reply = await talk.request(method, {"level": talk.facts.log_levels[-1]})
    is_declared = declares(talk.capabilities, "logging")
    if is_declared and reply.error is not None:
        _expect_answer(talk, reply, "logging")
    if reply.result is not None:
        if not is_declared:
            talk.findings.note(
                "answers-declared", f"the request {method}", "the capability logging", "an answer without it"
            )
        talk.listener.log_level = talk.facts.log_levels[-1]
        refused = await talk.request(method, {"level": NO_LEVEL}, about=f"{method} with a level that does not exist")
        talk.expect_error("log-level-checked", refused, INVALID_PARAMS)


async def _try_logging_by_request(talk: Talk) -> None:
    """The same where each request says which log messages it wants."""
    if not declares(talk.capabilities, "logging") or not declares(talk.capabilities, "tools"):
        return
    method, level = "tools/list", talk.facts.log_levels[-1]
    talk.listener.wants_logs, talk.listener.log_level = True, level
    usual = Metadata(talk.revision, {}, client_info(), level)
    await talk.request(method, about=f"{method} with a log level", metadata=usual, repeats=True)
    talk.listener.wants_logs, talk.listener.log_level = False, None
    strange = Metadata(talk.revision, {}, client_info(), NO_LEVEL)
    refused = await talk.request(method, about=f"{method} with a log level that does not exist", metadata=strange)
    talk.expect_error("log-level-checked", refused, INVALID_PARAMS)


async def _try_completion(talk: Talk) -> None:
    """See whether completion is there, where a revision has a capability for it."""
    method = "completion/complete"
    needed = talk.methods[method].capability if method in talk.methods else None
    if needed is None:
        return
    params = {"ref": {"type": "ref/prompt", "name": NO_METHOD}, "argument": {"name": "a", "value": ""}}
    reply = await talk.request(method, params, about=f"{method} of no prompt", quietly=True)
    is_declared = declares(talk.capabilities, needed)
    if is_declared and reply.code == METHOD_NOT_FOUND:
        _expect_answer(talk, reply, needed)
    elif not is_declared and reply.result is not None:
        talk.findings.note(
            "answers-declared", f"the request {method}", f"the capability {needed}", "an answer without it"
        )


def _expect_answer(talk: Talk, reply: CheckedAnswer, capability: str) -> None:
    talk.note("declared-answers", reply, f"a result, because {capability} is declared")


async def _try_notifications(talk: Talk) -> None:
    """Send a notification that nobody knows: whatever is said of it is too much."""
    if talk.facts.era == "per_request" and talk.findings.over != "stdio":
        return  # over HTTP each has an answer of its own, which `http` looks at
    frame = notification_frame("notifications/dragoman-check", {})
    talk.listener.is_silence_due = True
    talk.send(frame)
    await _sign_of_life(talk, "after a notification")
    talk.listener.is_silence_due = False


async def _try_metadata(talk: Talk) -> None:
    """Leave out what every request has to say, and say what no server speaks."""
    method = "tools/list" if declares(talk.capabilities, "tools") else talk.facts.lifecycle["discover"]
    bare = await talk.request(method, about=f"{method} without metadata", stamped=False, repeats=True)
    # Over HTTP a header still says it: then the two contradict each other.
    right = (INVALID_PARAMS,) if talk.findings.over == "stdio" else (INVALID_PARAMS, talk.codes["HEADER_MISMATCH"])
    talk.expect_error("meta-required", bare, *right)
    wrong = Metadata(NO_REVISION, {}, client_info())
    refused = await talk.request(method, about=f"{method} in a revision that does not exist", metadata=wrong)
    talk.expect_error("revision-refused", refused, talk.codes["UNSUPPORTED_PROTOCOL_VERSION"])


async def _try_listening(talk: Talk) -> None:
    """Subscribe to whatever there is, and see what comes first."""
    method = "subscriptions/listen"
    filters = {name: True for name, told in talk.facts.subscriptions.items() if told in talk.facts.announced}
    wanted = {
        name: True
        for name in filters
        if declares(talk.capabilities, talk.facts.announced[talk.facts.subscriptions[name]])
    }
    wanted = {name: True for name in wanted if name.endswith("Changed")}
    if not wanted or method not in talk.methods:
        return
    talk.listener.notices.clear()
    reply = await talk.request(
        method, {"notifications": wanted}, patience_s=min(_LISTEN_S, talk.patience.timeout_s), quietly=True
    )
    told = list(talk.listener.notices)
    if talk.is_over:
        return
    if reply.body is None and told[:1] != ["notifications/subscriptions/acknowledged"]:
        found = told[0] if told else "nothing"
        talk.findings.note("subscription-acknowledged", f"the request {method}", "an acknowledgement first", found)
    elif reply.error is not None:
        _expect_answer(talk, reply, "listChanged")


async def try_unknown_revision(talk: Talk) -> None:
    """Open a session in a revision that does not exist; the conversation, which has begun, is good for nothing else."""
    method = talk.facts.lifecycle["open"]
    params = offer(NO_REVISION)
    waits_s = talk.patience.for_opening(talk.facts.era)
    reply = await talk.request(
        method, params, about=f"{method} with a revision that does not exist", patience_s=waits_s
    )
    if reply.result is not None and reply.result.get("protocolVersion") == NO_REVISION:
        found = f"{NO_REVISION!r}"
        pointer = "/result/protocolVersion"
        talk.findings.note(
            "revision-answered", f"the answer to {reply.about}", "another revision", found, pointer=pointer
        )
