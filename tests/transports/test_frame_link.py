"""The end of a proxy in the same process: what is said, what waits, and how it ends."""

from __future__ import annotations

import pytest

from dragoman.core.envelope import Frame, notification_frame
from dragoman.transports.frame_link import FrameLink
from tests.support import waiting
from tests.transports.recorder import Recorder


def ignore(frame: Frame) -> None:
    """What the proxy says does not matter here."""


@pytest.mark.parametrize("ends_first", [False, True])
def test_an_end_is_told_with_all_before_it_though_the_proxy_reads_nothing(ends_first: bool) -> None:
    """It reads nothing while its server does not: to wait for that would be to wait for ever."""

    async def main() -> None:
        link, proxy = FrameLink(ignore), Recorder()
        link.start(proxy)
        link.say(notification_frame("first", {}))
        if not ends_first:
            link.pause_reading()
        link.say(notification_frame("second", {}))
        link.end("no more")
        if ends_first:
            link.pause_reading()
        await proxy.until(lambda: proxy.end)
        assert proxy.end == "no more"
        assert proxy.data.count(b"\n") == 2
        assert proxy.data.index(b"first") < proxy.data.index(b"second")
        link.resume_reading()
        await waiting.pass_time(0.1)  # not a second time

    waiting.run(main())
