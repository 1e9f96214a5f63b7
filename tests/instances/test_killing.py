"""Instances, servers and the store are killed while thirty clients call: no wrong answer, and no call done twice."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from tests.soak.killing import NEWER, OLDER, Killer, among_instances
from tests.support.profile import some
from tests.support.waiting import PATIENCE_S, wait_until

CLIENTS = 30
KILLS = 5
PAUSE_S = 0.3
"""Thirty clients take all that the processors have, for as long as it lasts."""
PAIRS = [("redis", NEWER), ("redis", OLDER), ("folder", OLDER), ("folder", NEWER), ("stdio", NEWER), ("stdio", OLDER)]


@pytest.mark.parametrize(("way", "revision"), some(PAIRS, 2))
def test_what_is_killed_under_load_makes_no_answer_wrong(tmp_path: Path, way: str, revision: str) -> None:
    """What fails may fail; sessions with a server over HTTP are not lost, but with a store that forgets."""
    with among_instances(tmp_path, "killed", revision, way, logs=revision == NEWER) as victims:
        is_over, wrong, answered = threading.Event(), [], [0] * CLIENTS

        def visit(number: int) -> None:
            chance = random.Random(number)
            while not is_over.is_set():
                try:
                    answered[number] += victims.visit(chance.choice((OLDER, NEWER)), chance)
                except Exception as error:  # whatever it is, it is wrong
                    wrong.append(f"{type(error).__name__}: {error}"[:300])

        clients = [threading.Thread(target=visit, args=(number,)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            with Killer([victims], seed=1, pause_s=PAUSE_S).at_work():
                wait_until(
                    lambda: sum(count for what, count in victims.seen.items() if "killed" in what) >= KILLS,
                    KILLS * PATIENCE_S,
                )
        finally:
            is_over.set()
            for client in clients:
                client.join(PATIENCE_S)
        assert wrong + victims.take_wrong() == []
        assert sum(answered) > CLIENTS


@pytest.mark.parametrize("way", ["redis"])
def test_after_the_store_itself_was_killed_all_goes_on(tmp_path: Path, way: str) -> None:
    with among_instances(tmp_path, "killed", OLDER, way) as victims:
        if "store" not in victims.others:
            pytest.skip("neither redis-server nor valkey-server is installed")
        chance = random.Random(1)
        assert victims.visit(OLDER, chance)
        victims.kill_store()
        wait_until(lambda: victims.visit(OLDER, chance) > 0)
        assert victims.take_wrong() == []
