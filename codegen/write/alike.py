"""What is the same all the way down: nodes of steps, and shapes, that one function can serve.

Called by `steps` and `nulls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar, assert_never

from codegen.plan.nodes import ArrayNode, Key, Node, ObjectNode, UnionNode, Work

Name = TypeVar("Name")


def told_apart(names: Iterable[Name], told: Callable[[Name, Mapping[Name, int]], str]) -> dict[Name, int]:
    """Numbers for things that lead to each other; those that are the same have the same.

    The coarsest such parting: all are taken to be the same, then those that differ in what they say themselves or in
    where they lead are told apart, until there are none.

    Args:
        names: The things, by name.
        told: What one says, with the numbers of those it leads to in place of their names.
    """
    names = list(names)
    numbers, count = dict.fromkeys(names, 0), 1
    while True:
        found: dict[str, int] = {}
        numbers = {name: found.setdefault(told(name, numbers), len(found)) for name in names}
        if len(found) == count:
            return numbers
        count = len(found)


def equal_nodes(nodes: Mapping[tuple[str, Key], Node]) -> list[list[tuple[str, Key]]]:
    """The nodes that do the same, all the way down, together; in the order of the first of each."""
    alike: dict[int, list[tuple[str, Key]]] = {}
    for one, number in told_apart(nodes, lambda one, numbers: _told(one[0], nodes[one], numbers)).items():
        alike.setdefault(number, []).append(one)
    return list(alike.values())


def _told(profile: str, node: Node, classes: Mapping[tuple[str, Key], int]) -> str:
    """What a node does, with the classes of the nodes it leads to in place of their names."""
    works = [None if work.node is None else classes[profile, work.node] for work in node.works()]
    return f"{works} {_bare(node)!r}"


def _bare(node: Node) -> Node:
    def bare(work: Work) -> Work:
        return replace(work, node=None)

    match node:
        case ArrayNode():
            return replace(node, label="", item=bare(node.item))
        case UnionNode():
            return replace(node, label="", cases=tuple(replace(case, work=bare(case.work)) for case in node.cases))
        case ObjectNode():
            members = {
                name: replace(member, work=bare(member.work), made=member.made and bare(member.made))
                for name, member in node.members.items()
            }
            return replace(node, label="", members=members, extra=bare(node.extra))
    assert_never(node)
