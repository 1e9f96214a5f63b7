"""The repair rule for nulls: for each revision, the shapes of its types, which say where a null may be taken out.

What is done with them is in `support/nulls.py`. Called by `regen`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from codegen.names import module_name, snake
from codegen.read.model import Array, Field, Literal, Object, Ref, Spec, Type, Union
from codegen.write.alike import told_apart
from codegen.write.layout import environment
from codegen.write.registry import NOTICE, TEMPLATES

KINDS = ("request", "notification", "result")


@dataclass(frozen=True, slots=True)
class Shape:
    """As `dragoman_spec.nulls.Shape`."""

    drops: tuple[str, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""
    items: str = ""
    tag: str = ""
    cases: Mapping[str, str] = field(default_factory=dict)
    rest: str = ""

    def names(self) -> Iterator[str]:
        """The other shapes that it leads to."""
        yield from (*self.members.values(), self.extra, self.items, *self.cases.values(), self.rest)

    def renamed(self, names: Mapping[str, str]) -> Shape:
        """The shape with other names for those it leads to; what has no name goes."""
        members = {key: names[name] for key, name in self.members.items() if name in names}
        cases = {value: names[name] for value, name in self.cases.items() if name in names}
        return Shape(
            drops=self.drops,
            members=members,
            extra=names.get(self.extra, ""),
            items=names.get(self.items, ""),
            tag=self.tag if cases else "",
            cases=cases,
            rest=names.get(self.rest, ""),
        )

    @property
    def facts(self) -> Mapping[str, object]:
        """What there is to say of it, by attribute."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}


def render_nulls(specs: Sequence[Spec], digests: Mapping[str, str]) -> dict[str, str]:
    """Render `nulls.py` of every revision, unformatted, by path below `generated/`."""
    template = environment(TEMPLATES).get_template("nulls.py.jinja")
    return {
        f"dragoman_spec/{module_name(spec.revision)}/nulls.py": template.render(
            notice=NOTICE, revision=spec.revision, digest=digests[spec.revision], **_plan(spec)
        )
        for spec in specs
    }


def _plan(spec: Spec) -> dict[str, object]:
    walk = _Walk(spec)
    tables: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for method in spec.methods.values():
        tables[method.kind][method.name] = walk.name(Ref(method.request), "")
        if method.results:
            results = tuple(map(Ref, method.results))
            one = results[0] if len(results) == 1 else Union(results)
            frame = Shape(members={"result": walk.name(one, f"{method.name} result value")})
            tables["result"][method.name] = walk.add(f"{method.name} result", frame)
    names = _kept(walk.shapes)
    shapes = {name: walk.shapes[name].renamed(names) for name in sorted(set(names.values()))}
    kept = {kind: {name: names[key] for name, key in table.items() if key in names} for kind, table in tables.items()}
    return {"shapes": shapes, "tables": kept}


def _kept(shapes: Mapping[str, Shape]) -> dict[str, str]:
    """The shapes in which there may be nulls, each with the name of the first that says the same."""
    busy: set[str] = set()
    while more := {key for key, one in shapes.items() if key not in busy and (one.drops or busy & {*one.names()})}:
        busy |= more
    bare = {key: shapes[key].renamed({key: key for key in busy}) for key in sorted(busy)}
    found: dict[int, str] = {}
    classes = told_apart(bare, lambda key, of: repr(bare[key].renamed({name: str(n) for name, n in of.items()})))
    return {key: found.setdefault(number, key) for key, number in classes.items()}


@dataclass(slots=True)
class _Walk:
    """Collects the shapes of one revision's types."""

    spec: Spec
    shapes: dict[str, Shape] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)

    def add(self, at: str, shape: Shape) -> str:
        """Keep a shape; its name is made of where it stands."""
        name = snake(at)
        while name in self.shapes:
            name += "_"
        self.shapes[name] = shape
        return name

    def name(self, type_: Type, at: str) -> str:
        """The name of a type's shape; none for a type that has no place for a null."""
        while isinstance(type_, Ref) and isinstance(other := self.spec.definitions[type_.name], Ref):
            type_ = other
        if isinstance(type_, Ref):
            if type_.name not in self.definitions:
                key = self.definitions[type_.name] = self.add(type_.name, Shape())
                self.shapes[key] = self._shape(self.spec.definitions[type_.name], type_.name)
            return self.definitions[type_.name]
        shape = self._shape(type_, at)
        return self.add(at, shape) if shape != Shape() else ""

    def _shape(self, type_: Type, at: str) -> Shape:
        match type_:
            case Array(item):
                return Shape(items=self.name(item, f"{at}[]"))
            case Object():
                return self._object(type_, at)
            case Union():
                return self._union(type_, at)
        return Shape()

    def _object(self, type_: Object, at: str) -> Shape:
        fields = type_.fields.items()
        return Shape(
            drops=tuple(key for key, member in fields if self._may_drop(member)),
            members={key: name for key, member in fields if (name := self.name(member.type, f"{at}.{key}"))},
            extra=self.name(type_.extra, f"{at}{{}}"),
        )

    def _union(self, type_: Union, at: str) -> Shape:
        """Lists; objects that a tag tells apart; and all others as one."""
        arms = list(self.spec.arms(type_))
        key = self._tag(arms)
        values = [self.spec.tags(arm, key) for arm in arms]
        known = Counter(value for of_one in values for value in of_one)
        told = {index for index, of_one in enumerate(values) if of_one and all(known[value] == 1 for value in of_one)}
        cases = {value: self.name(arms[index], f"{at}.{value}") for index in sorted(told) for value in values[index]}
        rest = [arm for index, arm in enumerate(arms) if index not in told or len(values[index]) > 1]
        lists = [array for arm in arms if isinstance(array := self.spec.resolve(arm), Array)]
        return Shape(
            items=self.name(lists[0].item, f"{at}[]") if lists else "",
            tag=key,
            cases=cases,
            rest=self._rest(rest, at),
        )

    def _tag(self, arms: list[Type]) -> str:
        """The field that says which of these an object is.

        It has one constant in one of them; or else several, in one that has fewer nulls taken out where all are as one.
        """
        tags = [self.spec.tag(arm) for arm in arms]
        for tag in tags:
            if tag and tags.count(tag) == 1:
                return tag[0]
        merged = self._merge(arms)
        for arm in arms:
            shape = self.spec.resolve(arm)
            fields = shape.fields if isinstance(shape, Object) else {}
            if any(merged[name].required and self._may_drop(member) for name, member in fields.items()):
                for name in fields:
                    others = {value for other in arms if other is not arm for value in self.spec.tags(other, name)}
                    if (mine := self.spec.tags(arm, name)) and others.isdisjoint(mine):
                        return name
        return ""

    def _may_drop(self, member: Field) -> bool:
        return not member.required and not self.spec.takes_null(member.type)

    def _merge(self, arms: list[Type]) -> dict[str, Field]:
        """The fields of several objects as one: what is optional wherever it is named."""
        named: dict[str, list[Field]] = {}
        for shape in map(self.spec.resolve, arms):
            for name, member in shape.fields.items() if isinstance(shape, Object) else ():
                named.setdefault(name, []).append(member)
        fields: dict[str, Field] = {}
        for name, members in named.items():
            same = all(member.type == members[0].type for member in members)
            kept = not all(self._may_drop(member) for member in members)
            fields[name] = Field(members[0].type if same else Literal(("",)), required=kept)
        return fields

    def _rest(self, arms: list[Type], at: str) -> str:
        """Objects that no tag tells apart, as one."""
        fields = self._merge(arms)
        return self.name(Object(fields), f"{at}.any") if fields else ""
