"""The listening socket, and what becomes of its connections."""

from __future__ import annotations

import logging
import socket

import pytest

from dragoman.errors import TransportClosed
from dragoman.transports.http.serve import Address, bind, describe, share_log


def test_a_free_port_is_picked_and_named() -> None:
    with bind(Address()) as listener:
        assert describe(listener, Address(), "/mcp") == f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


def test_an_address_with_colons_is_named_in_brackets() -> None:
    with bind(Address()) as listener:
        assert describe(listener, Address("::1"), "/").startswith("http://[::1]:")


def test_a_port_that_is_taken_is_an_error() -> None:
    with bind(Address()) as listener, pytest.raises(TransportClosed, match="cannot listen: Address already in use"):
        bind(Address(port=listener.getsockname()[1]))


def test_connections_do_not_wait_for_acknowledgements() -> None:
    # What asyncio looks at before it switches Nagle's algorithm off.
    with bind(Address()) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_what_is_added_to_the_log_of_the_event_loop_is_not_added_to_ours() -> None:
    ours, theirs = logging.getLogger("dragoman"), logging.getLogger("asyncio")
    before = list(ours.handlers)
    share_log()
    assert theirs.handlers == before
    theirs.addHandler(logging.NullHandler())
    assert ours.handlers == before
    share_log()
