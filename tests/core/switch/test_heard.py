"""What a request without a session gets of a server with a handshake, and how much it may want to hear."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.core.switch.to_session.notifications import ServerNotifications
from dragoman.core.switch.to_session.promoting import find_wanted
from dragoman.errors import RemoteProtocolError
from tests.core.upstream_talk import frame_of
from tests.proxy import test_per_request_asked as asked
from tests.proxy.conversation import expect_to_client, expect_to_server, notification, result, server
from tests.proxy.validity import hold


@pytest.mark.parametrize(("token", "heard"), [("p", ["p"]), (None, []), (0, [0])])
def test_progress_is_told_under_the_token_that_the_client_gave_and_not_without_one(
    token: Any, heard: list[Any]
) -> None:
    told: list[Any] = []
    loan = SimpleNamespace(request=SimpleNamespace(progress_token=token))
    served = SimpleNamespace(
        tools=SimpleNamespace(hear=lambda method: None),
        downward=SimpleNamespace(adapt=lambda frame, method: frame),
        loans=SimpleNamespace(find_by_token=lambda ours: loan if ours == 7 else None),
        front=SimpleNamespace(tell=lambda request, method, params: told.append(params["progressToken"])),
    )
    notifications = ServerNotifications(*cast(Any, (served, None)))
    notifications.take_notification(frame_of(notification("notifications/progress", progressToken=7, progress=1)))
    assert told == heard


@pytest.mark.parametrize(("wanted", "fits"), [([], True), (["t"] * 1024, True), (["t"] * 1025, False), ("t", False)])
def test_a_listen_request_names_a_list_of_tasks_and_not_too_many(wanted: object, fits: bool) -> None:
    params = {"notifications": {"taskIds": wanted}}
    if fits:
        assert find_wanted(params) == wanted
        return
    with pytest.raises(RemoteProtocolError) as caught:
        find_wanted(params)
    assert caught.value.code == -32602
    assert caught.value.data == {"pointer": "/params/notifications/taskIds"}


def test_an_answer_that_names_a_task_which_nobody_wanted_is_the_answer() -> None:
    peer = asked.Client()
    hold(
        [
            *asked.begin(),
            server(asked.elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, **{"question-1": asked.ACCEPTED}),
            expect_to_server(result(7, asked.ACCEPTED)),
            server(result(1, {**asked.DONE, "task": {"taskId": "t"}})),
            expect_to_client(lambda frame: frame["id"] == 2 and frame["result"]["content"] == asked.DONE["content"]),
        ]
    )
