"""What may be the same under another name is found by its shape."""

from __future__ import annotations

import pytest

from codegen.plan.twins import alike
from tests.support.small_specs import INTEGER, STRING, Schema, const, derivation, object_of, ref, request


def ask(method: str, *required: str, **params: Schema) -> Schema:
    """A request whose params require some of their members."""
    return object_of("method", "params", method=const(method), params=object_of(*required, **params))


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        (ask("a", x=STRING), ask("b", x=STRING), True),
        (ask("a", x=STRING), ask("b", x=STRING, y=STRING), True),
        (ask("a", x=STRING, y=STRING), ask("b", x=STRING), True),
        (ask("a", x=STRING), ask("b", y=STRING), False),
        (ask("a", "x", x=STRING), ask("b", x=STRING), False),
        (ask("a"), request("b"), False),
        (object_of("x", x=STRING), object_of("x", x=INTEGER), True),
        (object_of("x", x=STRING), object_of(x=STRING), False),
        (object_of(params=STRING), object_of(params=STRING), True),
        (object_of(params=STRING), object_of(params=INTEGER), False),
        (object_of(params=ref("P")), object_of(params=ref("P")), True),
        (STRING, STRING, False),
    ],
)
def test_definitions_are_alike_by_their_fields_and_those_of_their_params(
    older: Schema, newer: Schema, expected: bool
) -> None:
    way = derivation({"Old": older, "P": object_of()}, {"New": newer, "P": object_of(a=STRING)})
    assert alike(way, "Old", "New") is expected
