"""The mutants: a name, a place, and what is made of it there; and the tests that are asked, the likeliest first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

GOLDEN = "tests/golden"
SPEC = "tests/spec"
LAWS = "tests/laws/test_laws.py tests/laws/test_definitions.py"
RELEASES = "tests/codegen/releases"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake. `reason` says why it may survive, where it may."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str = ""


OWN = {
    "losses": "tests/spec/test_losses.py",
    "nulls": "tests/codegen/test_nulls.py tests/laws/test_nulls.py",
    "_convert": "tests/laws/test_definitions.py",
    "_types": "tests/codegen/test_bindings.py",
    "_json": "tests/spec/test_odd_arguments.py tests/spec/test_losses.py",
    "_base": "tests/spec/test_odd_arguments.py tests/spec/test_base.py tests/exactness/test_json_schema.py",
    "errors": "tests/spec/test_odd_arguments.py",
    "step": "tests/spec/test_step.py",
    "translation": "tests/spec/test_step.py",
}
"""The tests of modules of `dragoman_spec` that are asked first."""

WITH_TESTS = {path.stem.removeprefix("test_") for path in (Path(__file__).parents[1] / "codegen").glob("test_*.py")}


_ROOT = Path(__file__).resolve().parents[2]
_FILES = {path.stem: path.relative_to(_ROOT).as_posix() for path in (_ROOT / "codegen").glob("[!s]*/*.py")}
"""Where each module of the generator is."""


def of(module: str, *rows: tuple[str, str, str], tests: tuple[str, ...] = ()) -> list[Mutant]:
    """Mutants of one module of the generator; its own tests are asked first, then the made-up releases."""
    own = (f"tests/codegen/test_{module}.py",) if module in WITH_TESTS else ()
    return [Mutant(name, _FILES[module], old, new, (*own, *tests, RELEASES, LAWS)) for name, old, new in rows]


def in_support(module: str, *rows: tuple[str, str, str]) -> list[Mutant]:
    """Mutants of a module that is copied into `dragoman_spec`; the tests of losses or of actions are asked first."""
    own = OWN.get(module, "tests/spec/test_actions.py")
    asked = (own, GOLDEN, SPEC, LAWS, RELEASES)
    return [Mutant(name, f"codegen/support/{module}.py", old, new, asked) for name, old, new in rows]


MUTANTS: list[Mutant] = [
    *of(
        "derive",
        ("the minimal profile guards nothing on the way down", '(self.profile == "strict" or self.direction == "down")', 'self.profile == "strict"'),
        ("the minimal profile guards on the way up too", '(self.profile == "strict" or self.direction == "down") and', ""),
        ("hooks are called in every profile", "and self.profile in hook.profiles", ""),
        ("a list that gets shorter is left alone", "source.max_items > most", "False"),
        ("a list may be emptied", "limits += ", "_ = "),
        ("a list with something in it need not keep it", "item, target.min_items)", "item)"),
        ("a dropped constant is a loss", "if member.required and _is_constant(kind):\n            return", "if False:\n            return"),
        ("the revision is not named", "parts.named_in.append(new)", "parts.members[new] = self._member(member, target.fields[new], below)"),
        ("the revision of an older frame stays", "parts.forgotten.append(old)", "pass"),
        ("a renamed method keeps its name in the frame", "parts.facts[new] = method", "pass"),
        ("a field with a new name is not asked about", "if like is not None:", "if False:"),
        ("an optional object that has to be there is not made", "made = self.work(NOTHING, two, site)", "pass"),
        ("an object that has to be there is not made from nothing", "ensure = target.required and not source.required and both_objects", "ensure = False"),
        ("an emptied object stays", "prune = source.required and not target.required and both_objects", "prune = False"),
        ("an object that may be empty is made up", "elif _asks_for_something(kind) and old is None:", "elif isinstance(kind, Object) and old is None:"),
        ("null goes through where it is no value", "nulls = not self.source.takes_null(source.type)", "nulls = True"),
        ("nulls among other keys pass", "extra_null_passes=not self.source.takes_null(source.extra)", "extra_null_passes=True"),
        ("a verb that looks at the target has nothing to look at", "arguments[CHECK], final = Union(tuple(others)), True", "pass"),
        ("a key that names the revision is a string like others", " or self._names_revision(old, member)", ""),
        ("a decision rules in every profile", "self.profile not in decision.profiles", "False"),
        ("an arm that is gone is handed on twice", "again=not final", "again=False"),
        ("scalars that overlap are not looked at", "if near:", "if False:"),
        ("other keys are not converted", 'extra=self.work(source.extra, target.extra, site.below("{}", "/additionalProperties"))', "extra=IDLE"),
        ("what the minimal profile keeps it drops", 'if self.profile == "minimal":\n            return True', 'if self.profile == "minimal":\n            return False'),
        tests=("tests/codegen/test_plan.py", GOLDEN, "tests/laws/test_identity.py"),
    ),
    *of(
        "arms",
        ("arms are told apart by the first tag alone", "if len(same) == 1:", "if same:"),
        ("an arm goes to any object", "return needed <= shape.fields.keys() and {n for n, m in shape.fields.items() if m.required} <= needed", "return True"),
        ("the first arm that fits is taken", "return max(fitting, key=lambda other: self._shared(kind, other), default=None)", "return next(iter(fitting), None)"),
        ("a list finds no list", "if isinstance(kind, Array):", "if False:"),
        ("what is there under its own name is another thing, too", "if other not in namesakes and", "if"),
        ("an arm shows itself by nothing", "{} if first == arm else", "{} if True else"),
        tests=("tests/codegen/test_derive.py", GOLDEN),
    ),
    *of(
        "type_facts",
        ("5.0 is no integer", "or value.is_integer()", "or False"),
        ("true is a number", "isinstance(value, bool) == isinstance(one, bool) and value == one", "value == one"),
        ("limits do not count", "return types <= wider and _within(source, target)", "return types <= wider"),
        ("an exclusive limit is one that includes", "return least is not None and (least > bound if strict else least >= bound)", "return least is not None and least >= bound"),
        ("the highest exclusive limit is one that includes", "return most is not None and (most < bound if strict else most <= bound)", "return most is not None and most <= bound"),
    ),
    *of(
        "checks",
        ("a list may be as long as it likes", 'parts.append(f"len({v}) <= {type_.max_items}")', "pass"),
        ("a list may be empty", 'parts.append(f"len({v}) >= {type_.min_items}")', "pass"),
        ("true is 1", 'kind = "is str" if isinstance(values[0], str) else "in (int, float)"', 'kind = "is str" if isinstance(values[0], str) else "in (int, float, bool)"'),
        ("a string may be of any length", 'tests += [f"len({v}) >= {type_.min_length}"] if type_.min_length else []', "pass"),
        ("other keys are not looked at", 'parts.append(quick or f"all({inner} for {key}, {item} in {v}.items(){known})")', "pass"),
    ),
    *of(
        "plain",
        ("an unknown keyword is skipped", "        if unknown:", "        if False:"),
        ("oneOf is not looked at", "        if not _apart(plain, one, two):", "        if False:"),
        ("a circle is not seen", "            if other == name:", "            if False:"),
        ("additionalProperties false is open", "return result if extra is not False else", "return result if extra is not None else"),
        ("integers among numbers are an arm of their own", 'if not (kind == "integer" and "number" in kinds)', ""),
        ("a long way to say anything is a union", 'plain |= {name: {} for name in plain if _is_anything', 'plain |= {name: {} for name in () if _is_anything'),
        tests=("tests/codegen/test_normalise.py", "tests/codegen/test_load.py"),
    ),
    *of(
        "fixes",
        ("a fix holds for its own revision alone", "in reversed(read_until(overlay)):", "in read_until(overlay)[-1:]:"),
        ("an inherited fix overrules", "if fix.pointer not in ruled]", "]"),
    ),
    *of(
        "plan",
        ("error hooks of one profile are for both", "if way.profile in hook.profiles and (method is None or matches(method, hook.method)):", "if method is None or matches(method, hook.method):"),
        ("the id of an answer is not converted", '{**envelope.members, "result"', '{"result"'),
        ("a method that is gone passes", 'frames.refused[method.name] = Refusal("", way.direction, (method.name,), reason)', "pass"),
        ("a notification that is gone passes", "frames.swallowed.append(method.name)", "pass"),
        ("an error need not keep its id", 'needed=one.needed or name == "id"', "needed=one.needed"),
        ("an error is not converted", "error=error if error in nodes else None", "error=None"),
        ("a result that lacks what it must have passes", "demands=(*node.demands, *asked)", "demands=node.demands"),
        tests=(GOLDEN,),
    ),
    *of(
        "twins",
        ("a union of methods that is gone is not asked about", "if role not in way.target.unions:", "if False:"),
        ("methods are never alike", "if _methods_alike(way, method, new)]:", "if False]:"),
        ("methods of the other side are alike", "(new.kind, new.senders) == (method.kind, method.senders)]", "new.kind == method.kind]"),
        ("a method alone is not asked about", "if len(sent) == len(left) == 1 else", "if False else"),
        ("a request that becomes a notification is not asked about", "other.kind != method.kind:", "False:"),
        ("every new method is alike", "return nested and _required(asked[0]) == _required(asked[1])", "return True"),
        tests=("tests/codegen/test_derive.py", "tests/codegen/test_plan.py"),
    ),
    *of(
        "steps",
        ("functions may have one name", "while name in taken:", "while False:"),
        tests=(GOLDEN,),
    ),
    *of(
        "bodies",
        ("an object with work passes as it came", "    if not work:", "    if True:"),
        ("a member that went stays", 'return [*_block("if w is GONE:", _leave_out(repr(key))), *_otherwise(changed)]', "return changed"),
        ("null is converted", "elif member.null_passes:", "elif False:"),
        ("what is needed is left out", "    if member.needed:", "    if False:"),
        ("an untagged object of a union passes", 'if node.tag_key and "dict" in kinds:', "if False:"),
        tests=("tests/codegen/test_steps.py", GOLDEN),
    ),
    *of(
        "spelling",
        ("what is gone is handed on", 'return f"(GONE if (h := {value}) is GONE else {name}(h, {at}, out))"', 'return f"{name}({value}, {at}, out)"'),
        ("unknown arguments pass", "    if odd:", "    if False:"),
        tests=(GOLDEN,),
    ),
    *of(
        "alike",
        ("functions that differ are one", "told(name, numbers)", "type(told(name, numbers)).__name__"),
        ("what is led to does not count", "if len(found) == count:", "if True:"),
        tests=(GOLDEN,),
    ),
    *of(
        "naming",
        ("a name holds for its own revision alone", "in read_lineage(overlay):", "in read_lineage(overlay)[-1:]:"),
        ("two definitions may get one name", "elif naming.called not in definitions and naming.called not in names.values():", "else:"),
        ("an earlier name takes that of a definition", "if naming.own or naming.called not in definitions:", "if True:"),
        ("a name of nothing passes", "if naming.own and paths", "if False and paths"),
        ("references keep the old name", "if name in names:", "if False:"),
    ),
    *of(
        "moves",
        ("a field that comes out of an object is as needed as in it", "required=_always(spec, source, old)", "required=member.required"),
        ("an object that must be there goes", "not source.fields[old[0]].required", "True"),
        ("an object is made that asks for more", "or any(member.required for member in inner.fields.values())", ""),
        ("a field is asked about in an object that has another name", "and not renamed", ""),
        ("a field under a similar name elsewhere is not asked about", "RESEMBLANCE = 0.6", "RESEMBLANCE = 1.0"),
    ),
    *of(
        "nulls",
        ("null goes where it is a value", "return not member.required and not self.spec.takes_null(member.type)", "return not member.required"),
        ("required fields go", "return not member.required and not", "return not"),
        ("arms that a tag does not tell apart are cases", "if of_one and all(known[value] == 1 for value in of_one)}", "if of_one}"),
    ),
    *of(
        "checks",
        ("predicates may have one name", "while full in self.functions:", "while False:"),
    ),
    *of(
        "rulings",
        ("a default may be anything", "if not accepts(wanted, value, target.resolve):", "if False:"),
        ("any field can be copied", "(copied is None or not fits(copied, wanted))", "False"),
    ),
    *of(
        "overlay",
        ("an entry that matches nothing passes", "if not {(decision.name, at), (decision.name, f\"arm {arm}\")} <= self.used:", "if False:"),
        ("an overlay holds for earlier revisions too", "if file.stem <= overlay.stem]", "]"),
        tests=("tests/codegen/test_fixes.py", "tests/codegen/test_naming.py"),
    ),
    *of("chains", ("what the next step drops is copied", "dropped = bool(place)", "dropped = False"), tests=(GOLDEN,)),
    *in_support(
        "actions",
        ("the value of a truncated loss is what stayed", 'out.add(at, "truncated", value[most:])', 'out.add(at, "truncated", value[:most])'),
        ("an empty capability that goes is no loss", "    if value is not None:\n        out.notes.append", "    if value:\n        out.notes.append"),
        ("zero is empty", 'if value or type(value) in NUMBERS:\n        out.notes.append(((at, key), "dropped", value, False))', 'if value:\n        out.notes.append(((at, key), "dropped", value, False))'),
        ("zero is empty where it is cosmetic", 'if value or type(value) in NUMBERS:\n        out.notes.append(((at, key), "dropped", value, True))', 'if value:\n        out.notes.append(((at, key), "dropped", value, True))'),
        ("zero is empty where an object can be cosmetic", 'if value or type(value) in NUMBERS:\n        out.notes.append(((at, key), "dropped", value, cosmetic))', 'if value:\n        out.notes.append(((at, key), "dropped", value, cosmetic))'),
        ("renamed members that collide overwrite", "names[key] if key in names and names[key] not in y else key", "names.get(key, key)"),
        ("a null that goes is a loss", "    if value is not None:\n        out.add(at, \"dropped\", value)", '    out.add(at, "dropped", value)'),
        ("gone items stay", "left = [i for i, item in enumerate(y) if item is not GONE]", "left = list(range(len(y)))"),
        ("a list changes what it was given", "                y = x.copy()\n", "                y = x\n"),
        ("a title is copied over another", "or name in inner:", "or False:"),
        ("a moved field is lost track of", "out.move(at, {places[1]: places[0]})", "pass"),
        ("a field is moved over another", "return None if key in y else {**y, key: value}", "return {**y, key: value}"),
        ("an object is made in any case", "if held is None and not make:", "if False:"),
        ("an object that is left with nothing goes in any case", "kept = rest and (inner or not prune)", "kept = rest and inner"),
    ),
    *of(
        "facts",
        ("a flag of a client counts as a promise of the server", 'self.capabilities("server").items() if', 'self.capabilities("client").items() if'),
        ("requests inside results ask for nothing", "(*asking, *self.inputs) if method.capability", "asking if method.capability"),
        ("listed methods count where a schema says better", "if INPUT_REQUIRED in source.schema.definitions:", "if False:"),
        ("what cannot be shared is declared", ' - source.said["unshared"].keys()', ""),
        ("a flag is declared as an object", 'return True\n    return {name: _full', 'return {}\n    return {name: _full'),
        ("a key that some requests need counts as required", "set.intersection(*required)", "set.union(*required)"),
        ("what an entry names need not be there", "if not is_there:", "if False:"),
        ("a key of _meta is for every kind of frame", 'if kind in says["on"]', "if True"),
    ),
    *of(
        "fact_entries",
        ("an entry is for both eras", ' or entry.says.get("era", era) != era:', ":"),
        ("what is gone holds on", "said[table].pop(about, None)", "pass"),
        ("an entry holds for earlier revisions too", "if entry.revision > revision or", "if"),
        ("of two entries the later one holds", "if eras & seen:", "if False:"),
    ),
    *in_support(
        "frames",
        ("what a result lacks does not count", "or (lacks and lacks in result)", ""),
        ("any value of the field is refused", "if other_than is not None and result[has] == other_than:", "if False:"),
        ("a code is replaced for any method", "if only and method not in (None, only):", "if False:"),
        ("an original out of its range is restored", "if not codes[0] <= original[\"code\"] <= codes[1] or", "if"),
        ("a field is supplied where there is one", "if not isinstance(result, dict) or field in result:", "if not isinstance(result, dict):"),
    ),
    *in_support(
        "mcp",
        ("-32002 for a response to an unknown method", "if method != only or", "if method not in (None, only) or"),
        ("blocks of a split message come in reverse", "for number, block in enumerate(blocks):", "for number, block in reversed(list(enumerate(blocks))):"),
        ("a lone block is lost track of", "out.move(at, {at: (at, 0)})", "pass"),
        ("split blocks are lost track of", 'origins[(place, len(split)), "content"] =', "_ ="),
        ("an assumed capability is not noted", 'out.add((((at, "result"), "capabilities"), name), "added", {})', "pass"),
        ("a placeholder forgets annotations", "**{name: value[name] for name in keep if name in value}", ""),
    ),
    *in_support(
        "schemas",
        ("references below an $id are moved", 'inner if "$id" in inner else walk(', "walk("),
        ("references are not moved", '_moved(node, f"#/properties/{key}")', "node"),
        ("a schema that may be an object's is wrapped", 'isinstance(kinds, list) and "object" in kinds', "False"),
    ),
    *of(
        "places",
        ("arms of unions in unions count as one", 'inside = ["anyOf", str(new[index - len(known)])] if len(plain) > 1 else []', "inside: list[str] = []"),
        ("an arm that is there twice counts twice", " if spelled not in known]", "]"),
        ("pointers have the names of models", "self.upstream.get(name, name)", "name"),
        ("pointers go on where the file ends", "if end <= found", "if True"),
        ("pointers end in tables", "end += 2 if way[end] in TABLES else 1", "end += 1"),
        ("a reference that leads on is forgotten", 'or "$ref" in node else', "else"),
    ),
    *of(
        "plain",
        ("a reference into a definition is read where it is used", 'self.read(node, f"/$defs/{escaped(name)}/{path}")', "self.read(node, pointer)"),
        ("what an allOf narrows is placed where it was wide", "or name not in places:", "and name not in places:"),
        tests=("tests/codegen/test_places.py",),
    ),
    *of(
        "model",
        ("an arm is where its union is", 'return f"/anyOf/{index}{self.way_to(inner, arm)}"', 'return ""'),
        tests=("tests/codegen/test_places.py",),
    ),
    *of(
        "plan",
        ("errors are objects", "odd_errors=_odd_errors(way.source)", "odd_errors=False"),
    ),
    *in_support(
        "step",
        ("hooks are called on errors of any kind", "if odd:", "if False:"),
    ),
    *in_support(
        "_json",
        ("keys may be anything", "if name.__class__ is not str and not isinstance(name, str):", "if False:"),
        ("what is not JSON is measured", "return 0 if not_json(value) else _deep_size(value)", "return _deep_size(value)"),
        ("bytes are JSON", "isinstance(value, str | int) else", "isinstance(value, str | int | bytes) else"),
    ),
    *in_support(
        "_base",
        ("null that is assigned is absence", "if value is None and name in self._nullable:", "if False:"),
        ("null that is put into a copy is absence", "for name in self._nullable & update.keys() if update[name] is None}", "for name in ()}"),
        ("a set is JSON if it was taken", "if wrong is not None:\n            # Not JSON", "if False:\n            # Not JSON"),
        ("names on the wire are attributes", "_check_attribute(type(self), name)\n                super().__setattr__", "super().__setattr__"),
    ),
    *in_support(
        "errors",
        ("nobody is blamed", "if (wrong := not_json(value)) is not None:", "if (wrong := not_json(None)) is not None:"),
    ),
    *in_support(
        "translation",
        ("errors of a revision on the way are taken", "self._takes_odd_errors(1)", "self._takes_odd_errors()"),
        ("aliases are applied to requests", 'if kind == "notification" and name in self._aliases:', "if name in self._aliases:"),
        ("repairs come last", "found.append(table[name])", "found.insert(0, table[name])"),
        ("a swallowed method is refused in strict alone", "if name in direction.swallowed:", 'if name in direction.swallowed and self.profile == "strict":'),
    ),
    *in_support(
        "_types",
        ("true is 1", "and isinstance(self.value, bool) == isinstance(value, bool)", ""),
    ),
    *in_support(
        "_convert",
        ("a response is converted without its method", 'if kinds == ["result"] and method is None and', "if False and"),
        ("a request is converted without its method", 'if kinds != ["error"] and method not in', 'if kinds != ["error"] or method not in'),
    ),
    *in_support(
        "nulls",
        ("nulls of other keys stay", 'shape.members.get(key, shape.extra)', 'shape.members.get(key, "")'),
        ("nulls that may be there go", "gone, new = key in shape.drops, old", "gone, new = True, old"),
        ("a value is changed in place", "made = value.copy() if made is value else made", "made = value"),
        ("items are left alone", "if type(value) is list and shape.items:", "if False:"),
    ),
    *in_support(
        "losses",
        ("notes are settled in reverse", "for at, kind, value, cosmetic in notes:", "for at, kind, value, cosmetic in reversed(list(notes)):"),
        ("moves are undone in their own order", "in reversed(self.moves):", "in self.moves:"),
        ("values are those of the way", "self.found.append((here, kind, stood, cosmetic))", "self.found.append((here, kind, value, cosmetic))"),
        ("what was added and dropped is said", "self.found[self.added.pop(here)] = None", "self.added.pop(here)"),
        ("what is added on the way is plain", "(_PLAIN_AT_THE_END if number == last else _PLAIN)", "_PLAIN_AT_THE_END"),
        ("what is written anew is plain", '_PLAIN: Final = frozenset({"dropped", "hidden"})', '_PLAIN: Final = frozenset({"dropped", "hidden", "replaced", "rewritten"})'),
        ("a step after a move is plain", "is_plain = is_plain and kinds <= (", "is_plain = kinds <= ("),
        ("the whole frame is plain", 'if stood is value or kind == "added":', 'if stood is value or kind == "added" or at is None:'),
        ("what is dropped always stood in the source", 'if stood is value or kind == "added":', "if True:"),
    ),
    *of(
        "moves",
        ("a field of the same type is not proposed first", "    if alike:", "    if False:"),
        ("the field of the nearest name is not proposed", "-resemblance(old, name), name)", "name)"),
        ("an object deeper on the way is made whatever it asks for", "return _may_make(spec, inner, path[1:])", "return True"),
        ("a hint says that another type is the same", 'kind = "type" if same(*types) else', 'kind = "type" if True else'),
    ),
    *of(
        "derive",
        ("a field that moved is asked about again", "if old in asked:", "if False:"),
        ("an object of constants alone is asked about", "_asks_for_something(two)\n", "False\n"),
        ("a pair of other names finds a node that has moved", "for place, known in self._places.items() if known == work}", "for place, known in self._places.items() if False}"),
        ("a factor works the same way down", 'if self.direction == "up" else (1, rename.factor)', 'if self.direction == "up" else (rename.factor, 1)'),
        ("a factor of any rename is taken", "if site.at in one.at and (one.old, one.new) == names]", "if site.at in one.at]"),
    ),
    *of("nodes", ("a union refuses what needs no tag", '(case.json_type != "dict" or not case.tags)', '(case.json_type != "dict")')),
    *of("plan", ("a response may have no result", "counterpart, hooks), needed=True)}", "counterpart, hooks))}")),
    *of(
        "rulings",
        ("a factor for what is no number", "or not kind.types <= known or", "or"),
        ("a verb of any change is taken", "if decision.do not in found:", "if False:"),
        ("a value that the source lacks is mapped", "if not accepts(kind, read, source.resolve):", "if False:"),
        tests=("tests/codegen/test_derive.py", "tests/codegen/test_verbs.py", "tests/codegen/releases"),
    ),
    *of(
        "skeleton",
        ("safe defaults of one question are one", "for part in _same_default(question, plan) if complete else [question]:", "for part in [question]:"),
        ("defaults are advised where there is none", "if has_defaults(plan.undecided):", "if True:"),
        ("a unit is not hinted at", "if _is_unit(entry) else []", "if False else []"),
        ("what is not valid gives way to an empty object", "target.resolve) and not replaces", "target.resolve)"),
        ("a list of places is one long line", "LINE = 118", "LINE = 1000"),
    ),
    *[
        Mutant(name, "codegen/ask/questions.py", old, new, ("tests/codegen/test_skeleton.py", RELEASES))
        for name, old, new in (
            ("alike changes are asked about one by one", "found.setdefault(_subject(change), [])", "found.setdefault(id(change), [])"),
            ("fields of two names are one question", 'return change.target_way.rpartition("/properties/")[2]', 'return ""'),
            ("types that become others are one question", "return change.detail\n        case", 'return ""\n        case'),
            ("where else it is, is not said", "more = self.places[1:]", "more = ()"),
        )
    ],
    *of(
        "plain",
        ("limits of an allOf are the widest", 'max(said) if "min" in limit.lower() else min(said)', 'min(said) if "min" in limit.lower() else max(said)'),
        ("a number and an integer are a number", '{"type": min(kinds)', '{"type": max(kinds)'),
        ("a closed part closes nothing", "if others is False:", "if others is None:"),
        ("a field that a closed part lacks may be there", "if all(k in names for names in closed)}", "}"),
        ("what is asked for and forbidden is let through", 'sorted(set(merged["required"]) - properties.keys())', "[]"),
        ("any reference narrows another", "return all(own.get", "return True or all(own.get"),
        tests=("tests/codegen/test_normalise.py",),
    ),
    *of("checks", ("a closed object may have other keys", ".keys() <= {{", ".keys() >= {{")),
    *of("load", ("a closed object is open", "extra = NEVER if closed else", "extra = Anything() if closed else")),
    *in_support(
        "actions",
        ("a digest is one digit short", ".hexdigest()[:32]", ".hexdigest()[:31]"),
        ("one item too few is enough", "if len(y) < least:", "if len(y) < least - 1:"),
        ("one item too many is asked for", "if len(y) < least:", "if len(y) <= least:"),
        ("a refusal has no fields", "code=code, extra=fields)", "code=code)"),
        ("a number is scaled in silence", 'out.add(at, "rewritten", value)\n        scaled = int(whole)', "scaled = int(whole)"),
        ("a number in another unit has a fraction", "if rest and not check(scaled):", "if False:"),
        ("a number too large for the target passes", "    if not check(scaled):\n        raise", "    if False:\n        raise"),
        ("a boolean is scaled", "if type(value) not in (int, float):", "if not isinstance(value, (int, float)):"),
        ("the other items are no loss", "if len(value) > 1 or not fitting:", "if not fitting:"),
        ("an item that does not fit is taken", "if check(item)]", "]"),
        ("any value may be alone in a list", "    if not check([value]):\n        raise without", "    if False:\n        raise without"),
        ("a text is split in silence", 'out.add(at, "rewritten", value)\n    return value.split(separator)', "return value.split(separator)"),
    ),
    *in_support("schemas", ("dynamic references are not moved", '{"$ref", "$dynamicRef"}', '{"$ref"}')),
    *in_support("mcp", ("a URL is named twice", 'if url not in str(error.get("message"))]', "]")),
    *in_support("frames", ("an original with other keys is restored", 'or not original.keys() <= {"code", "data"}:', "or False:")),
    *in_support(
        "_base",
        ("a limit is said twice", "member.pop(limit, None)", "None"),
        ("names are always those of the wire", "by_alias = all(", "by_alias = True or all("),
    ),
]  # fmt: skip
