"""The conversation as text."""

from __future__ import annotations

import re

from dragoman.demo.crossings import Record
from dragoman.demo.ink import Ink
from dragoman.demo.narrate import describe_losses, narrate
from dragoman_spec import Loss


def told(record: Record, ink: Ink | None = None) -> str:
    return narrate(record, "", ink or Ink())


def test_every_pair_is_told_within_100_columns(record: Record) -> None:
    assert [line for line in told(record).splitlines() if len(line) > 100 or line != line.rstrip()] == []


def test_every_pair_is_told_within_80_columns(record: Record) -> None:
    directly = "the client gives up: expected 2024-11-05, found 2025-11-25"
    lines = narrate(record, directly, Ink(width=80)).splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_default_pair_shows_before_and_after(default_record: Record) -> None:
    text = told(default_record)
    before, after = '{"type":"audio","data":"UklGRiQ', '{"type":"text","text":"[Audio content: audio/wav]"}'
    assert text.index(before) < text.index(after)


def test_default_pair_shows_the_link_as_text(default_record: Record) -> None:
    assert '"text":"[The minutes](file:///studio/minutes.txt)"' in told(default_record)


def test_default_pair_shows_what_was_lost(default_record: Record) -> None:
    text = " ".join(told(default_record).split())
    lost = (
        "dropped /result/tools/0/{annotations,icons,outputSchema,title} /result/tools/2/title, hidden /result/tools/1"
    )
    assert f"lost {lost}" in text


def test_default_pair_shows_the_refusal(default_record: Record) -> None:
    text = told(default_record)
    assert '"message":"revision 2024-11-05 has no elicitation/create request to a client"' in text
    assert "proxy answered" in text


def test_last_lines_count_and_name_what_to_try(default_record: Record) -> None:
    assert told(default_record).splitlines()[-3:-1] == [
        "16 frames, 17 losses, 1 refusal. Try next:",
        "   dragoman demo --client 2025-11-25 --server 2024-11-05",
    ]


def test_colour_changes_nothing_but_colour_and_explains_itself(default_record: Record) -> None:
    plain = re.sub(r"\x1b\[\d+m", "", told(default_record, Ink(colour=True))).splitlines()
    assert plain.pop(2) == "Red did not arrive; green was put in its place."
    assert plain == told(default_record).splitlines()


def test_equal_revisions_are_said_to_pass() -> None:
    text = told(Record("2025-06-18", "2025-06-18"))
    assert "everything passes as the bytes that came" in text


def test_losses_beside_each_other_are_named_together() -> None:
    losses = tuple(Loss(pointer, "dropped", 1) for pointer in ("/a/y", "/b", "/a/x"))
    assert describe_losses(losses) == "dropped /b /a/{x,y}"
