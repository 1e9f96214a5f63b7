"""What each server must get from each client, and what a server tells by itself: the second half of the table.

Sampling, elicitation, roots, logging, progress and cancellation. Letters and rules as in `expectations.py`.
"""

from __future__ import annotations

from typing import Any, Final

from tests.peers.expectations import ALL, AUDIO, OFFERS, PLACEHOLDER, UNCHANGED, everywhere, text
from tests.peers.matching import ABSENT, Either, Has, Row, Says

LEVELS: Final = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
SAMPLING: Final = "asks/ask_sampling"
SOUND: Final = f"{SAMPLING}/sound/asked/0/messages"
ELICITING: Final = "asks/ask_user"
NO_SAMPLING: Final = "the server's revision cannot ask so"
NO_ELICITATION: Final = "the server's revision does not have elicitation"
REFUSED: Final = Has({"asked": [], "answer": {"refused": Has({"code": -32601})}})
ANSWER: Final = {"role": "assistant", "model": "peer-model", "stopReason": "endTurn"}
HELLO: Final = {**ANSWER, "content": text("I say hello")}


def message(content: Any) -> dict[str, Any]:
    """Return a sampling message of the user."""
    return {"role": "user", "content": content}


ROOTS_AND_SAMPLING: Final = [
    *everywhere("roots", "asks/ask_roots/all/answer", {"roots": [{"uri": "file:///home/user", "name": "home"}]}),
    *everywhere(
        "sampling request",
        f"{SAMPLING}/text/asked/0",
        {
            "messages": [message(text("hello"))],
            "maxTokens": 100,
            "systemPrompt": "Be brief",
            "temperature": 0.5,
            "stopSequences": ["END"],
            "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 1.0},
        },
    ),
    *everywhere("sampling result", f"{SAMPLING}/text/answer", HELLO),
    Row("audio sampled", "BCD", "BCD", f"{SAMPLING}/sing/answer", {**ANSWER, "content": AUDIO}, "both have it"),
    Row("audio sampled", "BCD", "A", f"{SAMPLING}/sing/answer/content", PLACEHOLDER, "becomes text"),
    Row(
        "audio sampled", "A", ALL, f"{SAMPLING}/sing/answer", HELLO, "the client's revision has no audio to answer with"
    ),
    Row("audio to sample from", "BCD", "BCD", SOUND, [message(AUDIO)], "both have it"),
    Row("audio to sample from", "A", "BCD", SOUND, [message(PLACEHOLDER)], "becomes text"),
    Row("audio to sample from", ALL, "A", f"{SAMPLING}/sound", ABSENT, NO_SAMPLING),
    Row(
        "several blocks sampled",
        "D",
        "D",
        f"{SAMPLING}/two_blocks/answer/content",
        [text("first"), text("second")],
        "both have it",
    ),
    Row(
        "several blocks sampled",
        "D",
        "ABC",
        f"{SAMPLING}/two_blocks/answer/content",
        text("first\nsecond"),
        "an array of text joins into one text",
    ),
    Row(
        "several blocks sampled",
        "ABC",
        ALL,
        f"{SAMPLING}/two_blocks/answer",
        HELLO,
        "the client's revision has one block",
    ),
    Row(
        "several blocks to sample from",
        "D",
        "D",
        f"{SAMPLING}/blocks/asked/0/messages",
        [message([text("one"), text("two")])],
        "both have it",
    ),
    Row(
        "several blocks to sample from",
        "ABC",
        "D",
        f"{SAMPLING}/blocks/asked/0/messages",
        [message(text("one")), message(text("two"))],
        "one message a block, same role",
    ),
    Row("several blocks to sample from", ALL, "ABC", f"{SAMPLING}/blocks", ABSENT, NO_SAMPLING),
    Row("tools to sample with", "D", "D", f"{SAMPLING}/tools/asked/0/tools/0/name", "add", "both have it"),
    Row(
        "tools to sample with",
        "ABC",
        "D",
        f"{SAMPLING}/tools",
        Has({"asked": [], "answer": {"refused": Has({"message": Says("tools")})}}),
        "a model without its tools would answer another question",
    ),
    Row("tools to sample with", ALL, "ABC", f"{SAMPLING}/tools", ABSENT, NO_SAMPLING),
]

CITY: Final = {"type": "object", "properties": {"city": {"type": "string", "title": "City"}}, "required": ["city"]}
ENUM_NAMES: Final = {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}
ONE_OF: Final = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}


def accepted(name: str, value: Any) -> dict[str, Any]:
    """Return the answer of a user who filled in one field."""
    return {"action": "accept", "content": {name: value}}


def color(field: dict[str, Any]) -> Has:
    """Return the outcome of asking for a colour by this form."""
    schema = {"type": "object", "properties": {"color": field}, "required": ["color"]}
    asked = Has({"message": "Please answer", "requestedSchema": schema})
    return Has({"asked": [asked], "answer": accepted("color", "r")})


ELICITATION: Final = [
    Row("form", "CD", "CD", f"{ELICITING}/form/answer", accepted("city", "r"), "both have it"),
    Row("form", "AB", "CD", f"{ELICITING}/form", REFUSED, "a client without elicitation never sees the request"),
    Row("form", ALL, "AB", ELICITING, {}, NO_ELICITATION),
    Row("form's schema", "CD", "CD", f"{ELICITING}/form/asked/0/requestedSchema", CITY, "both have it"),
    Row(
        "form's schema",
        "AB",
        "CD",
        f"{ELICITING}/form/asked",
        [],
        "a client without elicitation never sees the request",
    ),
    Row("form's schema", ALL, "AB", ELICITING, {}, NO_ELICITATION),
    Row("form's mode", "D", "D", f"{ELICITING}/form/asked/0/mode", "form", "both have it"),
    Row("form's mode", "ABC", "D", f"{ELICITING}/form/asked/0/mode", ABSENT, "modes came with 2025-11-25"),
    Row("form's mode", ALL, "ABC", f"{ELICITING}/form/asked/0/mode", ABSENT, "absent means form"),
    Row("titled choice", "D", "D", f"{ELICITING}/titled", color(ONE_OF), "both have it"),
    Row("titled choice", "C", "D", f"{ELICITING}/titled", color(ENUM_NAMES), "titles move to enumNames"),
    Row("titled choice", "CD", "C", f"{ELICITING}/titled", color(ENUM_NAMES), UNCHANGED),
    Row("titled choice", "AB", "CD", f"{ELICITING}/titled", REFUSED, "no elicitation"),
    Row("titled choice", ALL, "AB", ELICITING, {}, NO_ELICITATION),
    Row("several choices", "D", "D", f"{ELICITING}/multi/answer", accepted("colors", ["r"]), "both have it"),
    Row(
        "several choices",
        "ABC",
        "D",
        f"{ELICITING}/multi",
        Has({"asked": [], "answer": Has({"refused": Has({})})}),
        "no older form can ask for several values, and asking for one would be another question",
    ),
    Row("several choices", ALL, "ABC", f"{ELICITING}/multi", ABSENT, "the server's revision cannot ask so"),
    Row("a URL to visit", "D", "D", f"{ELICITING}/url/answer", {"action": "accept"}, "both have it"),
    Row(
        "a URL to visit",
        "C",
        "D",
        f"{ELICITING}/url",
        Has({"asked": [], "answer": {"refused": Has({"message": Says("https://example.com/consent")})}}),
        "refused, with the URL in the message so that the server's author can tell the user",
    ),
    Row("a URL to visit", "AB", "D", f"{ELICITING}/url", REFUSED, "no elicitation"),
    Row("a URL to visit", ALL, "ABC", f"{ELICITING}/url", ABSENT, "the server's revision cannot ask so"),
]


def logged(*levels: str) -> list[dict[str, Any]]:
    """Return the log messages of these levels."""
    return [{"level": level, "logger": "peer", "data": {"line": level}} for level in levels]


def steps(**more: Any) -> list[dict[str, Any]]:
    """Return three progress notes, `more` with the number of the step formatted in."""
    return [
        {
            "progressToken": "token-1",
            "progress": step,
            "total": 3,
            **{key: value.format(step) for key, value in more.items()},
        }
        for step in (1, 2, 3)
    ]


EXITS: Final = "a cancelled running request kills 1.6.0 and 1.9.4 servers, which no proxy can help"
ANSWERED: Final = "answer to the cancelled"
STILL_ANSWERED: Final = Has({"error": Has({"code": 0})})
LOST: Final = Has({"error": Has({"code": -32000})})
WAITS: Final = Has({"timeout": 6})
DIES_OR_ANSWERS: Final = (
    "a 1.6.0 or 1.9.4 server answers and dies at once: the answer gets out before, or it does not, and "
    "then nobody need answer what its client has cancelled"
)
TOLD: Final = "progress/progress"
TELLING: Final = [
    *everywhere("set level", "levels/set_warning", {"result": {}}),
    *everywhere("logs from warning", "levels/warning", logged(*LEVELS[3:]), "the level reaches the server"),
    *everywhere("logs from debug", "levels/debug", logged(*LEVELS), "and so does a second one"),
    *everywhere("slow answer", "progress/result/content", [text("counted to 3")]),
    Row("progress", "BCD", "BCD", TOLD, steps(message="step {}"), "both have messages; the token keeps its type"),
    Row("progress", "A", "BCD", TOLD, steps(), "progress messages came with 2025-03-26"),
    Row("progress", ALL, "A", TOLD, steps(), "the server's revision has no messages"),
    Row(ANSWERED, ALL, "CD", "cancel/call", STILL_ANSWERED, "SDK servers answer it still; that may cross"),
    Row(ANSWERED, ALL, "AB", "cancel/call", Either((STILL_ANSWERED, LOST, WAITS)), DIES_OR_ANSWERS, "proxy"),
    Row(ANSWERED, "A", "A", "cancel/call", Either((STILL_ANSWERED, WAITS)), DIES_OR_ANSWERS, "direct"),
    Row(ANSWERED, "B", "B", "cancel/call", Either((STILL_ANSWERED, LOST, WAITS)), DIES_OR_ANSWERS, "direct"),
    Row("cancelled", ALL, "CD", "cancel/afterwards/cancelled", ["slow"], "the server knows the id and goes on"),
    Row("cancelled", ALL, "AB", "cancel/afterwards/error/code", -32000, EXITS + ", but it tells", "proxy"),
    Row("cancelled", "A", "A", "cancel/afterwards", WAITS, EXITS + "; a 1.6.0 client just waits", "direct"),
    Row("cancelled", "B", "B", "cancel/afterwards/error/code", -32000, EXITS, "direct"),
]

EXPECTATIONS: Final = (*OFFERS, *ROOTS_AND_SAMPLING, *ELICITATION, *TELLING)
