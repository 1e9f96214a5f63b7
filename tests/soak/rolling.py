"""Rolling restarts: three instances behind HAProxy are stopped in turn, with SIGTERM, while a hundred clients call.

Each instance comes back before the next one goes. Two thirds of the clients have a session each, the others are of
2026-07-28. What counts is how many calls fail: none may, but those of sessions of commands, which end with their
instance: each client hears so once, and opens another one. `python -m tests.soak roll`.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.peers import started
from tests.soak.killing import INSTANCES, NEWER, OLDER, Client, Lost, Victims, put_behind
from tests.soak.proxies import DRAGOMAN
from tests.soak.trials import Verdict
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

CLIENTS: Final = 100
THINKS_S: Final = (0.1, 0.5)
DELAY_S: Final = 3
SETTLES_S: Final = 2.0
"""How long an instance is back before the next one goes: HAProxy asks it every half second, and wants two answers."""

LOST: Final = "lost sessions"
EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "service" / "haproxy.cfg"
TURNS: Final = ("redis", "round robin"), ("redis", "sticky"), ("command", "sticky"), ("stdio", "round robin")
"""What is behind (`put_behind`), and which instance a request comes to."""

NAMES: Final = {"redis": "a server over HTTP", "command": "commands", "stdio": "commands with --restarts"}


def run_rolls(folder: Path, part: float) -> Iterator[Verdict]:
    """Restart all instances before each kind of server."""
    if shutil.which("haproxy") is None:
        yield Verdict("rolling restart", "left out: HAProxy is not installed")
        return
    for number, (way, balance) in enumerate(TURNS):
        own = folder / f"roll{number}"
        own.mkdir()
        yield roll(own, way, balance, max(6, int(CLIENTS * part)))


def roll(folder: Path, way: str, balance: str, clients: int) -> Verdict:
    """Restart every instance once under load, and count what failed."""
    victims = Victims(way, folder, keeps=way == "redis", logs=False)
    with contextlib.ExitStack() as stack:
        options = put_behind(victims, stack, folder, OLDER, way)
        ports = [free_port() for _ in range(INSTANCES)]
        for port in ports:
            where = ("--listen", f"http://127.0.0.1:{port}", "--shutdown-delay", str(DELAY_S))
            line = (*DRAGOMAN, *where, "--max-sessions", "1000", *options)
            victims.begin(stack, "instance", lambda line=line: started(line))  # type: ignore[misc]
        victims.ports.append(stack.enter_context(balanced(folder, ports, balance)))
        load = stack.enter_context(Callers(victims, clients).calling())
        for instance, port in zip(victims.others["instance"], ports, strict=True):
            load.wait_for_all()
            instance.restart()
            wait_until(lambda port=port: is_ready(port))  # type: ignore[misc]
            time.sleep(SETTLES_S)
        load.wait_for_all()
    failed, count = load.failed, sum(load.failed.values())
    wrong = load.wrong + victims.take_wrong()
    if way != "command":
        wrong += [f"{number} calls failed: {why}" for why, number in failed.items()]
    else:  # of each client with a session once, when its instance is gone
        wrong += [f"{number} calls failed: {why}" for why, number in failed.items() if why != LOST]
        wrong += [f"{failed[LOST]} sessions were lost"] if failed[LOST] > INSTANCES * clients else []
    found = f"{clients} clients, {sum(load.answered)} calls, {count} failed"
    return Verdict(f"rolling restart before {NAMES[way]}, {balance}", found, tuple(wrong[:5]))


class Callers:
    """Clients that call, with a pause after each answer.

    Attributes:
        answered: How many calls were, by client.
        failed: How many were not, by what was seen of it.
        wrong: What must not be.
    """

    def __init__(self, victims: Victims, count: int) -> None:
        self._victims = victims
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self.answered = [0] * count
        self.failed: Counter[str] = Counter()
        self.wrong: list[str] = []

    @contextlib.contextmanager
    def calling(self) -> Iterator[Callers]:
        """Call as long as this is open."""
        threads = [threading.Thread(target=self._call, args=(one,), daemon=True) for one in range(len(self.answered))]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join(PATIENCE_S)
                self.wrong += ["a client waits and does not give up"] if thread.is_alive() else []

    def wait_for_all(self) -> None:
        """Wait until each has been answered twice more, or something is wrong."""
        before = list(self.answered)
        wait_until(
            lambda: bool(self.wrong) or all(now > was + 1 for now, was in zip(self.answered, before, strict=True))
        )

    def _call(self, number: int) -> None:
        chance = random.Random(number)
        client = Client(self._victims, OLDER if number % 3 else NEWER, chance)
        with contextlib.closing(client):
            while not self._is_over.wait(chance.uniform(*THINKS_S)):
                try:
                    client.call()
                    self.answered[number] += 1
                except Lost as lost:
                    with self._lock:
                        self.failed[str(lost)] += 1
                except Exception as error:  # whatever it is, it is what is looked for
                    with self._lock:
                        self.wrong.append(f"{type(error).__name__}: {error}"[:300])
                    return


@contextlib.contextmanager
def balanced(folder: Path, ports: list[int], balance: str) -> Iterator[int]:
    """Run HAProxy as in the example, with a server more; give its port."""
    port, file = free_port(), folder / "haproxy.cfg"
    text = EXAMPLE.read_text("utf-8")
    if balance == "round robin":
        sticky = text[text.index("    # A session is at") : text.index("    server one")]
        text = text.replace(sticky, "    balance roundrobin\n")
    first, second, third = (f"127.0.0.1:{one}" for one in ports)
    places = {"127.0.0.1:8000": f"127.0.0.1:{port}", "127.0.0.1:8081": first}
    for place, own in (places | {"127.0.0.1:8082": f"{second}\n    server three {third}"}).items():
        assert place in text
        text = text.replace(place, own)
    file.write_text(text, "utf-8")
    with subprocess.Popen(["haproxy", "-f", str(file)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_ready(port))
            yield port
        finally:
            process.terminate()


def is_ready(port: int) -> bool:
    """Ask whether clients are served there."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
