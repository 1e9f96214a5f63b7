"""The codec keeps value and kind of everything that JSON can say."""

import json

import pytest

from dragoman.core.codec import dumps, loads


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1.0",
        "-0.0",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        '"é 😀"',
        '"\\ud800"',
        '"\\udc00\\ud800 é"',
        '"\\u0000"',
        '{"a":[true,false,null,{}]}',
        '{"id":123456789012345678901234567890,"text":"\\ud800 \\" \\\\ é"}',
    ],
)
def test_codec_gives_back_what_it_read(text: str) -> None:
    assert dumps(loads(text.encode())).decode() == text


@pytest.mark.parametrize("text", ["100", "1.0", "123456789012345678901234567890", "1234567890123456789.5", "1e19"])
def test_loads_keeps_the_kind_of_a_number(text: str) -> None:
    assert (type(loads(text.encode())), loads(text.encode())) == (type(json.loads(text)), json.loads(text))


def test_dumps_pairs_no_surrogates_that_were_apart() -> None:
    assert loads(dumps("\ud83d")) == "\ud83d"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"NaN", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"1e400", "too large"),
        (b'"\xff"', "utf-8"),
        (b"1 2", "Extra data"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_loads_refuses_what_is_not_json(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loads(data)


def test_dumps_refuses_what_is_not_a_number_beside_a_long_one() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps([10**30, float("nan")])


def test_dumps_refuses_what_is_nested_too_deeply() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply"):
        dumps(value)
