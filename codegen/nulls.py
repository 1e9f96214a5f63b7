"""The repair rule for nulls: for each revision, functions that take `null` out of optional fields that do not allow it.

The same nodes and the same template part as the steps, over one revision instead of two. Called by `regen`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from codegen.layout import environment
from codegen.model import Anything, Array, Field, Literal, Object, Ref, Scalar, Spec, Type, Union
from codegen.names import module_name, snake
from codegen.plan import ArrayNode, Case, Key, Member, Node, ObjectNode, UnionNode, Work, prune
from codegen.registry import NOTICE, TEMPLATES


def render_nulls(specs: Sequence[Spec], digests: Mapping[str, str]) -> dict[str, str]:
    """Render `nulls.py` of every revision, unformatted, by path below `generated/`."""
    templates = environment(TEMPLATES)
    template = templates.get_template("nulls.py.jinja")
    return {
        f"dragoman_spec/{module_name(spec.revision)}/nulls.py": template.render(
            notice=NOTICE, revision=spec.revision, digest=digests[spec.revision], **_plan(spec)
        )
        for spec in specs
    }


def _plan(spec: Spec) -> dict[str, object]:
    walk = _Walk(spec)
    tables: dict[str, dict[str, Key]] = {"request": {}, "notification": {}, "result": {}}
    for method in spec.methods.values():
        tables[method.kind][method.name] = walk.definition(method.request)
        if method.results:
            key = snake(f"{method.name}_result_frame")
            walk.nodes[key] = ObjectNode(
                method.name, members={"result": Member(Work(walk.definition(method.results[0])))}
            )
            tables["result"][method.name] = key
    nodes = prune(walk.nodes)
    kept = {kind: {name: key for name, key in table.items() if key in nodes} for kind, table in tables.items()}
    return {"nodes": dict(sorted(nodes.items())), "tables": kept}


@dataclass(slots=True)
class _Walk:
    """Collects the nodes of one revision's types."""

    spec: Spec
    nodes: dict[Key, Node] = field(default_factory=dict)
    seen: set[Key] = field(default_factory=set)

    def definition(self, name: str) -> Key:
        key = snake(name)
        if key not in self.seen:
            self.seen.add(key)
            node = self._node(self.spec.definitions[name], name)
            if node is not None:
                self.nodes[key] = node
        return key

    def _work(self, type_: Type, at: str) -> Work:
        if isinstance(type_, Ref):
            return Work(self.definition(type_.name))
        node = self._node(type_, at)
        if node is None:
            return Work()
        key = snake(at)
        while key in self.nodes:
            key += "_"
        self.nodes[key] = node
        return Work(key)

    def _node(self, type_: Type, at: str) -> Node | None:
        match type_:
            case Ref(name):
                return self._node(self.spec.definitions[name], name)
            case Array(item, _):
                return ArrayNode(at, self._work(item, f"{at}[]"))
            case Object():
                return self._object(type_, at)
            case Union():
                return self._union(type_, at)
        return None

    def _object(self, type_: Object, at: str) -> ObjectNode:
        drops = tuple(
            name for name, member in type_.fields.items() if not member.required and not self._takes_null(member.type)
        )
        members = {
            name: Member(self._work(member.type, f"{at}.{name}"), optional=True)
            for name, member in type_.fields.items()
        }
        return ObjectNode(
            at,
            drops=drops,
            members=members,
            extra=self._work(type_.extra, f"{at}{{}}"),
            extra_except=tuple(type_.fields),
        )

    def _union(self, type_: Union, at: str) -> UnionNode:
        arms = list(self.spec.arms(type_))
        tags = [self.spec.tag(arm) for arm in arms]
        plain = [(tag, arm) for tag, arm in zip(tags, arms, strict=True) if tag and tags.count(tag) == 1]
        cases = tuple(Case("dict", self._work(arm, f"{at}.{tag[1]}"), (tag[1],)) for tag, arm in plain)
        lists = tuple(Case("list", self._work(arm, f"{at}.list")) for arm in arms if isinstance(arm, Array))
        rest = [arm for tag, arm in zip(tags, arms, strict=True) if not tag or tags.count(tag) > 1]
        return UnionNode(at, plain[0][0][0] if plain else None, (*cases, *lists, *self._one_shape(rest, at)))

    def _one_shape(self, arms: list[Type], at: str) -> tuple[Case, ...]:
        """Objects that no tag tells apart, as one: what is optional wherever it is named."""
        shapes = [shape for arm in arms if isinstance(shape := self.spec.resolve(arm), Object)]
        named: dict[str, list[Field]] = {}
        for shape in shapes:
            for name, member in shape.fields.items():
                named.setdefault(name, []).append(member)
        fields: dict[str, Field] = {}
        for name, members in named.items():
            kept = any(member.required or self._takes_null(member.type) for member in members)
            same = all(member.type == members[0].type for member in members)
            fields[name] = Field(members[0].type if same else Literal(("",)), required=kept)
        return (Case("dict", self._work(Object(fields), f"{at}.any")),) if fields else ()

    def _takes_null(self, type_: Type) -> bool:
        kind = self.spec.resolve(type_)
        if isinstance(kind, Union):
            return any(self._takes_null(arm) for arm in kind.arms)
        return isinstance(kind, Anything) or (isinstance(kind, Scalar) and "null" in kind.types)
