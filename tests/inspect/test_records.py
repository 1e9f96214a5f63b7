"""What a proxy tells its viewer arrives as it was: each kind of entry, however the bytes are cut."""

from __future__ import annotations

import pytest

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed, Refusal
from dragoman.core.translate import Crossing
from dragoman.inspect.records import pack, unpack
from dragoman.trace.lines import Entry, Noted, Scribe, Translated, Where
from dragoman.transports.base import HttpHeads
from dragoman_spec import Loss

CALL = Frame(b'{"jsonrpc":"2.0","id":"\\u00fc","method":"tools/call"}', "request", b'"\xc3\xbc"', "tools/call")
ANSWER = Frame(b'{"jsonrpc":"2.0","id":1,"result":{}}', "result", b"1", None, {"result": {}}, b"7")
LOSS = Loss("/result/title", "dropped", "a title", True)
ENTRIES: list[Entry] = [
    Noted(1.5, Where("session 1 of ada", 3, "client"), "received", CALL),
    Noted(1.5, Where("", 4, "server"), "sent", ANSWER),
    Noted(1.5, Where("", 4, "server"), "received", Malformed(-32700, "not JSON", line=b"nonsense \xff")),
    Noted(1.5, Where("", 4, "server", "files"), "ended", "it has closed"),
    Noted(
        1.5,
        Where("", 4, "server"),
        "http",
        HttpHeads("POST", b"POST / HTTP/1.1\r\nHost: a\r\n", 200, {b"date": b"x"}, (b"1",)),
    ),
    Noted(1.5, Where("", 4, "client"), "http", HttpHeads("GET", {b"host": b"a"}, 0, {})),
    (1.5, Where("", 4, "client"), "received", CALL),
    (1.5, Where("", 4, "client"), "http", HttpHeads("POST", {}, 200, ((b"Date", b"x"),), frozenset((b"1",)))),
    Translated(2.0, "", Crossing(Side.SERVER, "2025-06-18", "2024-11-05", "tools/call", ANSWER, CALL, [LOSS])),
    Translated(
        2.0,
        "",
        Crossing(Side.CLIENT, "2025-06-18", "2024-11-05", "x", CALL, Refusal(-32601, "no", {"a": 1}), ()),
        "git",
    ),
    Translated(2.0, "", Crossing(Side.CLIENT, "2025-06-18", "2024-11-05", None, CALL, None, ())),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_makes_the_same_line_on_the_other_side(entry: Entry) -> None:
    (read,) = unpack(bytearray(pack([entry])))
    assert isinstance(read, Noted | Translated)
    assert Scribe(1).write(read) == Scribe(1).write(entry)


def test_batches_may_be_cut_anywhere() -> None:
    data, told = bytearray(), []
    for byte in pack(ENTRIES[:3]) + pack([*ENTRIES[3:], ("dropped", 1.0, 2)]):
        data.append(byte)
        told += unpack(data)
    assert len(told) == len(ENTRIES) + 1
    assert told[-1] == ("dropped", 1.0, 2)
    assert [Scribe(1).write(one) for one in told[:-1]] == [Scribe(1).write(one) for one in ENTRIES]
    assert not data
