"""What clients know tools, prompts, resources and templates of several servers as."""

from __future__ import annotations

import itertools
import random
import re
import time

import pytest

from dragoman.core.switch.router.names import LONGEST, MOST_NAMES, MOST_TEMPLATES, NameKind, NameOwner, Names
from tests.support.effort import effort

TOOL, RESOURCE, TEMPLATE = NameKind.TOOL, NameKind.RESOURCE, NameKind.TEMPLATE


def names(*servers: str, always: bool = False) -> Names:
    made = Names(always=always)
    made.set_servers({server: server for server in servers})
    return made


def known(made: Names, server: str, *listed: str, kind: NameKind = TOOL) -> list[str]:
    """Learn names; give what they are known as."""
    made.learn(server, kind, listed)
    return [made.show(server, kind).get(name, name) for name in listed]


def test_a_name_of_one_server_stays() -> None:
    assert known(names("a", "b"), "a", "x", "y") == ["x", "y"]


def test_a_name_of_two_servers_gets_the_prefix_of_each_whoever_comes_first() -> None:
    for order in (("a", "b"), ("b", "a")):
        made = names("a", "b")
        for server in order:
            made.learn(server, TOOL, ["x"])
        assert (made.show("a", TOOL), made.show("b", TOOL)) == ({"x": "a_x"}, {"x": "b_x"})


def test_a_name_that_was_never_told_is_nobodys_while_two_have_it() -> None:
    made = names("a", "b")
    made.learn("b", TOOL, ["x"])
    made.learn("a", TOOL, ["x"])
    assert made.find(TOOL, "x") is None


def test_names_of_a_server_that_is_not_there_are_not_learned() -> None:
    made = names("a")
    made.learn("b", TOOL, ["x"])
    assert made.find(TOOL, "x") is None


def test_a_server_that_has_changed_begins_anew() -> None:
    made = names("a")
    made.learn("a", TOOL, ["x"])
    made.tell(TOOL)
    made.set_servers({"a": "a"}, ["a"])
    assert made.find(TOOL, "x") is None


def test_names_are_kept_to_what_models_take() -> None:
    made = names("a")
    shown = known(made, "a", "files.read", "o" * 100, "o" * 99 + "p", "", "grüße", "files_read")
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in shown)
    assert len(set(shown)) == 6
    assert shown[0] != "files_read" or shown[5] != "files_read"
    assert all(made.find(TOOL, name) for name in shown)


def test_prefixed_names_are_no_longer_than_models_take() -> None:
    made = names("s" * 80, "t" * 80, always=True)
    one, other = (known(made, server * 80, "n" * 60)[0] for server in "st")
    assert len(one) <= LONGEST >= len(other)
    assert one != other


def test_the_prefix_of_a_uri_is_a_scheme_that_clients_leave_as_it_is() -> None:
    """Clients that read URIs as such write schemes in small letters, and refuse one that begins with a digit."""
    servers = ("Files", "files", "FILES", "1st", "a b", "\u00e4rger", "_")
    made = names(*servers)
    for server in servers:
        made.learn(server, RESOURCE, ["file:///x"])
    uris = {made.show(server, RESOURCE)["file:///x"] for server in servers}
    assert len(uris) == len(servers)
    assert all(re.fullmatch(r"[a-z][a-z0-9.-]*\+file:///x", uri) for uri in uris), uris
    assert {"files+file:///x", "server-1st+file:///x", "a-b+file:///x"} <= uris


def test_the_version_changes_only_with_what_is_shown() -> None:
    made = names("a", "b")
    before = made.version
    made.learn("a", TOOL, ["x"])
    assert made.version == before
    made.learn("b", TOOL, ["x"])
    assert made.version == before + 1


def test_a_server_cannot_have_names_without_end() -> None:
    made = names("a")
    made.learn("a", TOOL, ["old"])
    made.tell(TOOL)
    listed = [f"n{number}" for number in range(MOST_NAMES + 5)]
    made.learn("a", TOOL, listed)
    assert made.find(TOOL, "old") is None
    assert all(made.find(TOOL, name) == NameOwner("a", name) for name in listed), "what it lists can be called"


def test_the_template_that_says_most_of_a_uri_has_it() -> None:
    templates = {
        "files": "file:///{path}",
        "logs": "file:///logs/{day}/{name}.txt",
        "middle": "x{y}z",
        "plain": "plain:x",
        "broken": "broken{",
        "two": "no:{a}{b}",
    }
    made = names(*templates)
    for server, template in templates.items():
        made.learn(server, TEMPLATE, [template])
    found = {
        uri: None if (owner := made.find(RESOURCE, uri)) is None else owner.server
        for uri in (
            "file:///a/b",
            "file:///logs/1/a.txt",
            "file:///logs/1",
            "file:///logs/1.txt",
            "xz",
            "plain:x",
            "plain:xy",
            "no:",
            "q:",
        )
    }
    assert found == {
        "file:///a/b": "files",
        "file:///logs/1/a.txt": "logs",
        "file:///logs/1": "files",
        "file:///logs/1.txt": "files",
        "xz": "middle",
        "plain:x": "plain",
        "plain:xy": None,
        "no:": "two",
        "q:": None,
    }


def test_a_uri_of_two_servers_gets_another_scheme() -> None:
    made = names("a", "b_c")
    for server in ("a", "b_c"):
        made.learn(server, RESOURCE, ["x:y"])
    assert made.find(RESOURCE, "b-c+x:y") == NameOwner("b_c", "x:y")


def test_another_way_to_make_names_counts_from_the_next_servers_on() -> None:
    made = names("a")
    made.learn("a", TOOL, ["x"])
    made.set_policy(always=True, separator="__")
    made.set_servers({"a": "a"})
    assert made.show("a", TOOL) == {"x": "a__x"}


class Sessions:
    """Clients that are told lists while servers come, go and change what they have, at random.

    Attributes:
        told: What each name meant when a client was told it.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.servers = self.random.sample(SERVERS, 3)
        self.names = names(*self.servers, always=self.random.random() < 0.3)
        self.listed: dict[tuple[str, NameKind], list[str]] = {}
        self.told: dict[tuple[NameKind, str], NameOwner] = {}

    def step(self) -> None:
        kind = self.random.choice(list(NameKind))
        action = self.random.choices([self.learn, self.tell, self.change], [10, 7, 2])[0]
        action(kind)
        for (about, name), owner in self.told.items():
            assert self.names.find(about, name) == owner

    def learn(self, kind: NameKind) -> None:
        server = self.random.choice(self.servers)
        pool = NAMES if kind in (TOOL, NameKind.PROMPT) else URIS
        self.listed[server, kind] = self.random.sample(pool, self.random.randint(0, 4))
        self.names.learn(server, kind, self.listed[server, kind])

    def tell(self, kind: NameKind) -> None:
        seen: set[str] = set()
        for server in self.servers:
            shown = self.names.show(server, kind)
            for name in self.listed.get((server, kind), ()):
                known = shown.get(name, name)
                assert known not in seen, "two things of one name"
                assert kind is not TOOL or re.fullmatch(r"[A-Za-z0-9_-]{1,64}", known)
                assert self.told.setdefault((kind, known), NameOwner(server, name)) == NameOwner(server, name)
                seen.add(known)
        self.names.tell(kind)

    def change(self, _: NameKind) -> None:
        """Take a server out, put one in, or change its entry."""
        server = self.random.choice(SERVERS)
        is_there, stays = server in self.servers, self.random.random() < 0.5
        if not is_there:
            self.servers.insert(self.random.randint(0, len(self.servers)), server)
        elif not stays and len(self.servers) > 1:
            self.servers.remove(server)
        self.names.set_policy(always=self.random.random() < 0.3, separator=self.random.choice(["_", "-"]))
        self.names.set_servers({one: one for one in self.servers}, [server] if is_there else [])
        if is_there:
            self.told = {name: owner for name, owner in self.told.items() if owner.server != server}
            self.listed = {about: listed for about, listed in self.listed.items() if about[0] != server}


SERVERS = ["a", "b", "a_b", "A", "\u00e4", "1"]
NAMES = [
    "x",
    "y",
    "a_x",
    "b_x",
    "a_b_x",
    "_x",
    "x" * 64,
    "x" * 65,
    "gr\u00f6\u00dfe",
    "\u6587\u4ef6",
    "\u6a94\u6848",
    "",
    "a-x",
]
URIS = ["file:///x", "file:///y", "a+file:///x", "b+file:///x", "h:{x}", "h:{x}/y", "a+h:{x}"]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_a_name_means_one_thing_as_long_as_its_server_is_there(seed: int) -> None:
    sessions = Sessions(seed)
    for _ in range(60):
        sessions.step()


@pytest.mark.parametrize("order", list(itertools.permutations(("a", "a_b", "c"))))
def test_a_prefixed_name_is_not_that_of_a_server_with_a_longer_prefix(order: tuple[str, ...]) -> None:
    made = names(*order, always=True)
    for server, name in (("a", "b_x"), ("a_b", "x"), ("c", "x")):
        made.learn(server, TOOL, [name])
    assert made.find(TOOL, "a_b_x") == NameOwner("a_b", "x")
    assert made.show("a", TOOL)["b_x"].startswith("a_b_x_")


def test_no_server_gets_a_uri_that_begins_with_the_prefix_of_another() -> None:
    made = names("evil", "files")
    assert known(made, "evil", "files+x:1", kind=RESOURCE) == ["evil+files+x:1"]


@pytest.mark.parametrize("template", ["x:" + "{}" * 1_500_000, "x:" + "{" * 3_000_000, "x:{a}" * 600_000], ids=len)
def test_matching_a_template_takes_time_in_proportion_to_its_length(template: str) -> None:
    made = names("a", "b")
    began_s = time.process_time()
    made.learn("a", TEMPLATE, [template, template[:8_000]])
    made.find(RESOURCE, "x:" + "y" * 3_000_000)
    made.find(RESOURCE, "x:" + "y" * 8_000)
    assert made.show_uri("a", template) == template
    assert time.process_time() - began_s < 2


def test_a_name_that_is_too_long_is_not_remembered() -> None:
    made = names("a", "b")
    made.learn("a", RESOURCE, ["x:" + "y" * 100_000, "x:1"])
    assert made.find(RESOURCE, "x:" + "y" * 100_000) is None
    assert made.find(RESOURCE, "x:1") == NameOwner("a", "x:1")


def test_a_uri_that_a_server_says_is_compared_with_few_templates_and_few_pieces() -> None:
    made = names("a", "b")
    made.learn("a", TEMPLATE, ["b+x" + "{e}z" * 60 + str(number) for number in range(MOST_TEMPLATES)])
    assert len(made.show("a", TEMPLATE)) == MOST_TEMPLATES
    assert made.show_uri("a", "b+x/").startswith("b+x")
    assert effort(lambda: [made.show_uri("a", "b+x" + "z" * 100) for _ in range(200)]) < 4


def test_a_uri_is_compared_with_a_bounded_number_of_templates() -> None:
    """One server may list any number, and each read of a URI that is on no list would be compared with all of them."""
    made = names("a", "b")
    for count in (MOST_TEMPLATES, 60_000):
        made.learn("a", TEMPLATE, [f"x:{number}{{a}}" for number in range(count)])
        made.tell(TEMPLATE)
    made.learn("b", TEMPLATE, ["y:{a}"])
    assert made.find(RESOURCE, "x:7seven") == NameOwner("a", "x:7seven")
    assert made.find(RESOURCE, "y:z") == NameOwner("b", "y:z")
    assert effort(lambda: [made.find(RESOURCE, f"z:{number}") for number in range(20)]) < 10
    assert effort(lambda: [made.find(RESOURCE, f"x:{number}z") for number in range(20)]) < 10
