"""`python -m dragoman.demo.stateless_client REVISION`: a client whose requests each speak for themselves.

Lives here: its questions, and its answers to what a result asks. Must not: know that there are other revisions than its
own, or that there is a proxy. Called by `demo.stage`, as a process of its own.
"""

from __future__ import annotations

import sys
from typing import Any

from dragoman.core.bridge.names import META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION
from dragoman.demo.peer import Frame, Peer, run_client


class StatelessClient:
    """Asks, and asks again with what it was asked.

    Args:
        revision: The revision spoken.
        peer: Where requests go and responses come from.
    """

    def __init__(self, revision: str, peer: Peer) -> None:
        self.peer = peer
        self._about = {
            META_VERSION: revision,
            META_CLIENT_INFO: {"name": "caller", "version": "2.0"},
            META_CLIENT_CAPABILITIES: {"elicitation": {"form": {}}},
        }

    def converse(self) -> None:
        """Hold the whole conversation.

        Raises:
            GivenUp: The server is not understood.
        """
        self.ask("server/discover")
        self.ask("tools/list")
        result = self.ask("tools/call", name="publish", arguments={})
        while result["resultType"] == "input_required":
            answers = {key: {"action": "accept", "content": {"place": "team"}} for key in result["inputRequests"]}
            state = {"requestState": result["requestState"]} if "requestState" in result else {}
            result = self.ask("tools/call", name="publish", arguments={}, inputResponses=answers, **state)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and give its result."""
        return self.peer.ask_result(method, {**params, "_meta": self._about}, self.ignore)

    def ignore(self, frame: Frame) -> None:
        """Nothing that comes beside an answer needs one."""


if __name__ == "__main__":
    sys.exit(run_client(StatelessClient(sys.argv[1], Peer()).converse))
