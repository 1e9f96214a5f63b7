"""The conversation as text: scene by scene, what was sent, what arrived, and what was lost in between.

Lives here: words and layout. Must not: decide what is shown of a frame (`demo.shorten`) or how it is coloured
(`demo.ink`). Called by `dragoman.cli.demo`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from dragoman.demo.crossings import DemoCrossing, Record, pair_lines, scenes
from dragoman.demo.ink import LABEL_COLUMNS, Ink
from dragoman.demo.shorten import Span, Tone, compare, shorten
from dragoman_spec import HANDSHAKE_REVISIONS, Loss

TITLES: Final = {
    "initialize": "each is answered in its own revision",
    "tools/list": "what the server offers",
    "tools/call record": "progress, a question to the model, a rich result",
    "resources/read": "a file",
    "completion/complete": "a value that the user began to type",
    "tools/call publish": "a tool that wants to ask the user first",
    "tasks/list": "a client that asks without looking",
}

ANSWER_COLUMNS: Final = 240
"""A refusal is shown whole: it says why."""


def narrate(record: Record, directly: str, ink: Ink) -> str:
    """Tell a whole conversation.

    Args:
        record: What happened.
        directly: What happened without the proxy; empty if they understood each other.
        ink: What may be written.

    Returns:
        Lines, the last one ended too.
    """
    crossings = pair_lines(record)
    return "\n".join([*_open(record, directly, ink), *_tell(crossings, ink), *_close(record, crossings, ink)]) + "\n"


def _open(record: Record, directly: str, ink: Ink) -> Iterator[str]:
    client, server = record.client_revision, record.server_revision
    heading = f"A client of {client} and a server of {server}, joined by the proxy."
    yield ink.paint(heading, "heading")
    if directly:
        yield f"Without it: {directly}."
    elif client == server:
        yield "They speak the same revision: once that is known, everything passes as the bytes that came."
    yield '→ arrived as it was sent; … stands for what is cut; "jsonrpc" is left out.'
    if ink.colour:
        yield f"{ink.paint('Red', Tone.GONE)} did not arrive; {ink.paint('green', Tone.NEW)} was put in its place."


def _tell(crossings: list[DemoCrossing], ink: Ink) -> Iterator[str]:
    for number, scene in enumerate(scenes(crossings), 1):
        request = scene[0].before
        tool = request.get("params", {}).get("name") if request["method"] == "tools/call" else None
        name = f"{request['method']} {tool}" if tool else request["method"]
        yield ""
        yield ink.paint(f"{number}. {name}", "heading") + f": {TITLES[name]}"
        for crossing in scene:
            yield from _tell_crossing(crossing, ink)


def _tell_crossing(crossing: DemoCrossing, ink: Ink) -> Iterator[str]:
    sender, receiver = crossing.sender.value, crossing.sender.other.value
    room = ink.width - LABEL_COLUMNS
    if crossing.same_bytes:
        yield from lay_out(f"{sender} → {receiver}", [Span(shorten(crossing.before, room))], ink)
    elif crossing.after is None:
        yield from lay_out(f"{sender} sent", [Span(shorten(crossing.before, room))], ink)
        if crossing.answer is not None:
            yield from lay_out("proxy answered", [Span(shorten(crossing.answer, ANSWER_COLUMNS), Tone.NEW)], ink)
    else:
        yield from lay_out(f"{sender} sent", compare(crossing.before, crossing.after, Tone.GONE), ink)
        yield from lay_out(f"{receiver} got", compare(crossing.after, crossing.before, Tone.NEW), ink)
    if crossing.losses:
        yield from lay_out("lost", [Span(describe_losses(crossing.losses))], ink, "loss")


def lay_out(label: str, spans: list[Span], ink: Ink, style: str = "label") -> Iterator[str]:
    """Lay out pieces of text behind a label."""
    head = f"   {label}".ljust(LABEL_COLUMNS)
    for line in ink.lines(spans, ink.width - LABEL_COLUMNS):
        yield ink.paint(head, style) + line
        head = " " * LABEL_COLUMNS


def describe_losses(losses: tuple[Loss, ...]) -> str:
    """Name losses by kind and pointer, those beside each other together: `dropped /result/tools/0/{icons,title}`."""
    places = sorted((loss.kind, *loss.pointer.rpartition("/")[::2]) for loss in losses)
    told = []
    for kind, of_kind in groupby(places, lambda place: place[0]):
        pointers = []
        for parent, beside in groupby(of_kind, lambda place: place[1]):
            names = [name for _, _, name in beside]
            pointers.append(f"{parent}/{names[0]}" if len(names) == 1 else f"{parent}/{{{','.join(names)}}}")
        told.append(f"{kind} {' '.join(pointers)}")
    return ", ".join(told)


def suggest(client: str, server: str) -> Iterator[str]:
    """Say what to try next: another pair, and one's own server."""
    yield f"   dragoman demo --client {client} --server {server}"
    yield "   dragoman proxy -- COMMAND ARG ...       # the command of your own server"


def _close(record: Record, crossings: list[DemoCrossing], ink: Ink) -> Iterator[str]:
    losses = sum(len(crossing.losses) for crossing in crossings)
    refused = sum(crossing.answer is not None for crossing in crossings)
    counts = [_count(len(crossings), "frame"), _count(losses, "loss", "es"), _count(refused, "refusal")]
    client, server = record.server_revision, record.client_revision
    if client == server:
        client, server = HANDSHAKE_REVISIONS[0], HANDSHAKE_REVISIONS[-1]
    yield ""
    yield ink.paint(", ".join(counts), "heading") + ". Try next:"
    yield from suggest(client, server)


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else plural}"
