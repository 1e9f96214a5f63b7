"""The one place that knows how SDK releases differ.

Lives here: building SDK objects from the newest vocabulary, sending frames by method name, the strictness of both
roles, and a recorder of what crosses a session. Runs under every release in `requirements/`; imports nothing of
Dragoman. Called by `server.py`, `tools.py` and `client.py`, each of which is one program for all four releases.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, TextIO

import anyio
import mcp.client.session as client_session
import mcp.server.lowlevel.server as lowlevel
from mcp import types
from mcp.shared.exceptions import McpError

RELEASE = version("mcp")
REVISION: str = types.LATEST_PROTOCOL_VERSION
"""The native revision of the installed release; the only one that a strict peer accepts."""

INVALID_PARAMS = -32602


def speaks(since: str) -> bool:
    """Say whether the native revision is `since` or a later one (dates compare as text)."""
    return since <= REVISION


def make(kind: str, /, **fields: Any) -> Any:
    """Build `types.<kind>`, leaving out what this release does not name.

    Every object of the SDK is open, so a field of a later revision would leak out of an older server.
    """
    cls = getattr(types, kind)
    named = {info.alias or key for key, info in cls.model_fields.items()}
    return cls(**{key: value for key, value in fields.items() if key in named and value is not None})


def dump(model: Any) -> Any:
    """Return the JSON value of an SDK object as it came, without defaults that were not on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Verbatim:
    """A request that is sent as it is, for what a release's own model cannot hold."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return what the session puts into the frame."""
        return self.content


async def ask(session: Any, method: str, params: dict[str, Any] | None, result: str) -> Any:
    """Send the request `method` from either role and return the answer as `types.<result>`."""
    content = _call(method, params)
    request: Any
    if params is not None and "cursor" in params and not hasattr(types, "PaginatedRequestParams"):
        # Release 1.6.0 believes that the cursor stands beside `params`, where no server looks for it.
        request = Verbatim(content)
    else:
        union = types.ClientRequest if isinstance(session, client_session.ClientSession) else types.ServerRequest
        request = union.model_validate(content)
    related = _metadata(session)
    return await session.send_request(request, getattr(types, result), **related)


async def tell(session: Any, method: str, params: dict[str, Any] | None = None) -> None:
    """Send the notification `method` from either role."""
    is_client = isinstance(session, client_session.ClientSession)
    union = types.ClientNotification if is_client else types.ServerNotification
    related = _metadata(session)
    if method.endswith(("/list_changed", "/updated")):
        # They belong to no request, and come on the stream of none.
        related = {}
    elif related:
        related = {"related_request_id": related["metadata"].related_request_id}
    await session.send_notification(union.model_validate(_call(method, params)), **related)


def _metadata(session: Any) -> dict[str, Any]:
    """Say which request a server's message belongs to, so that it comes on that request's stream (from 1.9 on)."""
    if isinstance(session, client_session.ClientSession) or not speaks("2025-03-26"):
        return {}
    from mcp.shared.message import ServerMessageMetadata

    try:
        return {"metadata": ServerMessageMetadata(related_request_id=lowlevel.request_ctx.get().request_id)}
    except LookupError:
        return {}


def refuse(code: int, message: str, data: Any = None) -> McpError:
    """Return the exception that the SDK answers with exactly this JSON-RPC error."""
    return McpError(types.ErrorData(code=code, message=message, data=data))


def make_server_strict(rejection: str) -> None:
    """Make every server session of this process refuse `initialize` with any revision but the native one.

    Args:
        rejection: `listed` names the supported revision in the error's data, `bare` only says no; the field has both.
    """

    class StrictServerSession(lowlevel.ServerSession):
        """A session whose server matches the revision exactly."""

        async def _received_request(self, responder: Any) -> None:
            request = responder.request.root
            if isinstance(request, types.InitializeRequest) and request.params.protocolVersion != REVISION:
                asked = request.params.protocolVersion
                data = {"supported": [REVISION], "requested": asked} if rejection == "listed" else None
                with responder:
                    await responder.respond(
                        types.ErrorData(code=INVALID_PARAMS, message="Unsupported protocol version", data=data)
                    )
                return
            await super()._received_request(responder)

    lowlevel.ServerSession = StrictServerSession


def make_client_strict() -> None:
    """Make every client session of this process raise when the server answers another revision than the native one."""
    client_session.SUPPORTED_PROTOCOL_VERSIONS = [REVISION]


@asynccontextmanager
async def recorded(streams: tuple[Any, Any], sink: TextIO | None) -> AsyncIterator[tuple[Any, Any]]:
    """Pass a transport's two streams on, noting each frame in `sink`.

    A line each: `{"pid": number}` of this process first, then `{"got": frame}` and `{"sent": frame}`.
    """
    if sink is None:
        yield streams
        return
    sink.write(json.dumps({"pid": os.getpid()}) + "\n")
    outer_read, outer_write = streams
    read_in, read_out = anyio.create_memory_object_stream[Any](0)
    write_in, write_out = anyio.create_memory_object_stream[Any](0)

    async def pump(source: Any, target: Any, label: str) -> None:
        async with source, target:
            async for item in source:
                sink.write(json.dumps({label: _frame(item)}) + "\n")
                sink.flush()
                try:
                    await target.send(item)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    async with anyio.create_task_group() as group:
        group.start_soon(pump, outer_read, read_in, "got")
        group.start_soon(pump, write_out, outer_write, "sent")
        yield read_out, write_in
        group.cancel_scope.cancel()


def _call(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    return {"method": method} if params is None else {"method": method, "params": params}


def _frame(item: Any) -> Any:
    if isinstance(item, Exception):
        return {"unreadable": str(item)}
    # Releases from 1.8 on wrap the frame together with transport metadata.
    message = getattr(item, "message", item)
    return dump(message.root)
