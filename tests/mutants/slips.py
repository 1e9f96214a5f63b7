"""More mutants: slips of a kind that reads well, in what is said, in how far something goes, and in the tables.

Each is what a hurried change could leave behind. `table` has the decisions of the generator; here are support code,
overlays and `protocol.toml`, and what the generator writes for people.
"""

from __future__ import annotations

from tests.mutants.table import GOLDEN, LAWS, RELEASES, SPEC, Mutant, in_support, of

STEPS = "codegen/templates/dragoman_spec/steps.py.jinja"
MODEL = "codegen/templates/dragoman_spec/models/pydantic_v2/BaseModel.jinja2"
PAGE = "codegen/templates/docs/way.md.jinja"
WRITTEN = "tests/codegen/test_written.py"
"""What the generated tree looks like, whatever it does."""


def in_file(file: str, *rows: tuple[str, str, str], tests: tuple[str, ...] = (WRITTEN,)) -> list[Mutant]:
    """Mutants of something that `regen` reads: an overlay, a table or a template."""
    asked = ("tests/codegen/test_overlay.py", *tests, GOLDEN, SPEC, LAWS, RELEASES)
    return [Mutant(name, file, old, new, asked) for name, old, new in rows]


def in_overlay(revision: str, *rows: tuple[str, str, str]) -> list[Mutant]:
    """Mutants of the decisions for the step into a revision."""
    return in_file(f"codegen/overlays/{revision}.toml", *rows, tests=("tests/laws/test_cosmetic.py",))


SLIPS: list[Mutant] = [
    # --- what models do ---
    *in_support(
        "_base",
        ("a constant that is given is overruled in silence", "                values[key] = _given(value, shape.objects.get(key))", "                values.setdefault(key, _given(value, shape.objects.get(key)))"),
        ("null for a required member counts as absent", "            elif key not in shape.optional:\n                values[key] = value\n", ""),
        ("meta set to None stays as null", "self.__pydantic_extra__.pop(META, None)", "self.__pydantic_extra__[META] = None"),
        ("a copy takes names of the wire for new members", "attributes.get(name, known[name]): value", "known[name]: value"),
        ("the description of a model is its whole docstring", 'cls.__doc__.partition("\\n\\n")[0]', "cls.__doc__"),
        ("limits of our own numbers are not exported", "member[keyword] = getattr(part, limit)", "pass"),
        ("what a field means everywhere is not said", " or _said(everywhere.get(key), revision)", ""),
        ("a wording is for later revisions than its own", "if since <= revision), default", "if since < revision), default"),
        ("a required null is not shown", " or fields[name].is_required():", ":"),
        ("models with more arms are taken for one object", "is not type(None)]\n    if type(None) in get_args(annotation) and len(arms) == 1:", "is not type(None)]\n    if type(None) in get_args(annotation):"),
    ),
    *in_support(
        "_json",
        ("what is there twice holds itself", "                held.popitem()\n", "                pass\n"),
        ("the key of what is wrong is not said", "return (*path, key)[1:], wrong", "return tuple(path[1:]), wrong"),
        ("a pointer is escaped twice", '"/" + str(part).replace("~", "~0").replace("/", "~1")', '"/" + str(part).replace("/", "~1").replace("~", "~0")'),
        ("deep lists have a comma more", "2 + max(len(item) - 1, 0)", "2 + len(item)"),
        ("half a character has no size", '.encode("utf-8", "surrogatepass"))\n    except', '.encode("utf-8"))\n    except'),
    ),
    *in_support(
        "_locate",
        ("a place is told without what is above it", "path = (*prefix, *walk.path)", "path = tuple(walk.path)"),
        ("arms are told as far up as the value", "(depth + len(prefix), arm)", "(depth, arm)"),
        ("a null that is required may be left out", 'self.optional or (not rest and schema["type"] == "default")', "self.optional or not rest"),
        ("a very long number is written out", "case int() if value.bit_length() > MOST_BITS:", "case int() if False:"),
    ),
    *in_support(
        "_types",
        ("a null that was given is left out", "lambda value: NULL if value is None else value", "lambda value: value"),
        ("a required constant may be absent", "absent = None if constant in required else wanted", "absent = wanted"),
        ("a schema is the dict that was given", "        return value.copy()\n\n    return check", "        return value\n\n    return check"),
    ),
    *in_support(
        "_validation",
        ("a result of a notification is any result", 'if entry.kind != "request":', "if False:"),
        ("of all results the usual one alone is asked", "definitions[:1] if as_usual else definitions", "definitions[:1]"),
    ),
    *in_support(
        "_convert",
        ("a warning names our own line", "stacklevel=3", "stacklevel=1"),
        ("a class derived from a model is none", "for kind in type(model).__mro__:", "for kind in type(model).__mro__[:1]:"),
    ),
    # --- what actions do ---
    *in_support(
        "actions",
        ("a list of just the length is truncated", "len(value) <= most:", "len(value) < most:"),
        ("what no wrapping helps is wrapped", "    if not check(wrapped):\n        raise without_counterpart(at, value)\n", ""),
        ("an empty field is refused", "    if value.get(field):\n        raise Untranslatable(reason, pointer=pointer((at, field))", "    if field in value:\n        raise Untranslatable(reason, pointer=pointer((at, field))"),
        ("half a character has no digest", '.encode("utf-8", "surrogatepass")).hexdigest()', '.encode("utf-8")).hexdigest()'),
        ("a long string is quoted whole", "string {value[:40]!r}", "string {value!r}"),
        ("one is what true says", "is_same = type(value) is type(same) and value == same", "is_same = value == same"),
        ("a list is looked up among constants", "otherwise if isinstance(value, list | dict) else to.get(value, otherwise)", "to.get(value, otherwise)"),
        ("what is not text is copied", "if not isinstance(text, str) or not isinstance(inner, dict)", "if text is None or not isinstance(inner, dict)"),
        ("a refusal for a field does not say which", "pointer=pointer((at, field)), code=-32602\n    )", "pointer=pointer(at), code=-32602\n    )"),
        ("a whole number in another unit becomes a fraction", "whole if type(value) is int and not rest else", "whole if False else"),
    ),
    *in_support(
        "frames",
        ("data beside an original is lost", '{**error["data"], "original": original} if', '{"original": original} if'),
        ("data of our own stays in a restored error", 'if key != "data"}', "}"),
        ("the lowest code of a range is not restored", 'codes[0] <= original["code"]', 'codes[0] < original["code"]'),
        ("the highest code of a range is not restored", 'original["code"] <= codes[1]', 'original["code"] < codes[1]'),
        ("a refused result does not say for which field", 'pointer=f"/result/{has}"', 'pointer="/result"'),
        ("what is supplied is not said", '    out.add(((at, "result"), field), "added", value)\n', ""),
    ),
    *in_support(
        "losses",
        ("the size of several values counts their commas", "size(self.values) - len(self.values) - 1", "size(self.values)"),
        ("a tilde in a key is not escaped", '.replace("~", "~0").replace("/", "~1")\n    return f"{above}/{key}"', '.replace("/", "~1")\n    return f"{above}/{key}"'),
        ("a null makes an object more than cosmetic", "item is None or name in parts", "name in parts"),
    ),
    *in_support(
        "translation",
        ("routes are kept without end", "if len(self._routes) < 1024:", "if True:"),
        ("any target is taken", "era(source), era(target)", "era(source)"),
        ("a pickled translator is strict", "_translator, (self.source, self.target, self.profile, self.rules)", '_translator, (self.source, self.target, "strict", self.rules)'),
        ("codes alone touch no frame", "any((direction.error, direction.errors, direction.every_error))", "any((direction.error, direction.every_error))"),
        ("refused methods touch no frame", "        direction.refused,\n", ""),
    ),
    *in_support(
        "schemas",
        ("references in tuples are not moved", '"oneOf", "prefixItems", "items"', '"oneOf", "items"'),
        ("references in patterns are not moved", '"patternProperties", ', ""),
        ("references in conditions are not moved", '        "if",\n', ""),
        ("references in dependent schemas are not moved", ', "dependentSchemas"', ""),
        ("references in dependencies are not moved", '"dependencies", "dependentSchemas"', '"dependentSchemas"'),
        ("names of anchors are moved as pointers are", '(value == "#" or value.startswith("#/"))', 'value.startswith("#")'),
        ("a wrapped schema forgets its dialect", '{"$schema": value["$schema"]} if isinstance', "{} if isinstance"),
        ("a wrapped value may be absent", '{key: moved}, "required": [key]}', "{key: moved}}"),
        ("nothing matches as everything does", 'return {} if schema else {"not": {}}', "return {}"),
        ("what cannot be moved is moved", ' or _unmovable(value):', ":"),
        ("keys beside a reference mean the same", "not beside_reference", "True"),
        ("a list of items means the same", 'and not isinstance(node.get("items"), list)', "and True"),
    ),
    *in_support(
        "mcp",
        ("text in other letters is written as numbers", 'json.dumps(value, ensure_ascii=False, separators=(",", ":"))', 'json.dumps(value, separators=(",", ":"))'),
        ("a result that one item says is whole", "len(value) == len(texts)", "texts"),
        ("what a wrapped result says is said again", 'return _is_said(texts, inner)', "return False"),
        ("a path that ends in a slash has no name", '.rstrip("/")', ""),
        ("a name that a URI gives back is a loss", 'and value == name_from_uri(item["uri"])', "and False"),
        ("an untitled choice has no name", 'option.get("title", option["const"])', 'option.get("title")'),
        ("texts of a result are joined without a break", '"\\n".join(["[Tool result]", *texts, *', '"".join(["[Tool result]", *texts, *'),
        ("what our conversion restores is a missing resource", ' or "original" in data:', ":"),
        ("the first of two names is needed", 'for name in match[1].split("|"):', 'for name in match[1].split("|")[:1]:'),
        ("URLs are named without a break", "', '.join(missing)", "''.join(missing)"),
    ),
    *in_support(
        "errors",
        ("a refusal is told with nulls", '            **self.extra,\n        }\n        return {key: value for key, value in data.items() if value is not None}', "            **self.extra,\n        }\n        return data"),
        ("a place is told as empty", '"pointer": self.pointer or None,', '"pointer": self.pointer,'),
        ("an error forgets its fields on the way to another process", "_restored, (type(self), self.args), vars(self)", "_restored, (type(self), self.args), {}"),
    ),
    *in_support(
        "protocol",
        ("without its member a request never needs the part", "return self.is_default", "return False"),
        ("a part for any value is needed for none", "self.value is None or params", "params"),
    ),
    *in_support(
        "step",
        ("the highest code of a range is another error", "lowest <= code <= highest", "lowest <= code < highest"),
        ("the first repair for a code is the only one", "(new := function(frame, method, out)) is not frame:", "((new := function(frame, method, out)) is not frame or True):"),
    ),
    # --- what is decided ---
    *in_overlay(
        "2026-07-28",
        ("older answers may be shared", 'value = "private"', 'value = "public"'),
        ("older answers may be kept", "with = { value = 0 }", "with = { value = 60000 }"),
        ("every URL question is another one", 'with = { of = "url" }', 'with = { of = "message" }'),
        ("completions are cut short", "with = { most = 100 }", "with = { most = 99 }"),
        ("structured content is wrapped otherwise than its schema", 'do = "wrap-unless-valid"\nwith = { key = "result" }', 'do = "wrap-unless-valid"\nwith = { key = "value" }'),
        ("an incomplete result is a success in the minimal profile", 'reason = "Clients up to 2025-11-25 would read it as an empty success."\nprofiles = ["strict", "minimal"]', 'reason = "Clients up to 2025-11-25 would read it as an empty success."'),
        ("answers to questions are left out in the minimal profile", 'when = "inputResponses"', 'when = "requestState"'),
        ("one code of the newer ones is not restored", "codes = [-32022, -32021] }", "codes = [-32021, -32021] }"),
        ("reserved codes end one too early", "codes = [-32099, -32020]\n", "codes = [-32098, -32020]\n"),
        ("a missing resource is one of any method", 'only = "resources/read", field', 'only = "tools/call", field'),
        ("optional tasks are cosmetic", 'value = "forbidden"', 'value = "optional"'),
        ("a change of roots is cosmetic", 'at = "ClientCapabilities.roots.listChanged"\nvalue = false', 'at = "ClientCapabilities.roots.listChanged"\nvalue = true'),
        ("who answers is lost", 'at = "*Result._meta.io.modelcontextprotocol/serverInfo"', 'at = "*Result._meta.io.modelcontextprotocol/subscriptionId"'),
    ),
    *in_overlay(
        "2025-11-25",
        ("tools that could use tasks are hidden", 'equals = "required"', 'equals = "optional"'),
        ("a task is an empty success of a question", 'has = "task", lacks = "action"', 'has = "task", lacks = "task"'),
        ("the URL of a refused question is not in its data", ', show = ["url"] }', " }"),
        ("forced tool use is cosmetic", 'value = "auto"', 'value = "required"'),
        ("newer capabilities reach strict old servers", 'strict_methods = ["initialize"]', 'strict_methods = ["ping"]'),
        ("values are joined without a break", 'separator = ", "', 'separator = ""'),
    ),
    *in_overlay(
        "2025-06-18",
        ("a link is named by its name", "[{title|name}]({uri})", "[{name}]({uri})"),
        ("a link forgets its description", 'lines = ["description"], ', ""),
        ("titles of tools go nowhere", 'into = ["annotations", "title"]', 'into = ["annotations", "name"]'),
        ("a title in contents stays", 'fields = ["name", "title"]', 'fields = ["name"]'),
    ),
    *in_overlay(
        "2025-03-26",
        ("audio forgets for whom it is", ', keep = ["annotations"] }', " }"),
        ("a hint that a tool destroys is cosmetic", 'at = ["ToolAnnotations.destructiveHint", "ToolAnnotations.openWorldHint"]\nvalue = true', 'at = ["ToolAnnotations.destructiveHint", "ToolAnnotations.openWorldHint"]\nvalue = false'),
    ),
    *in_overlay(
        "2026-07-28",
        ("a name that HTTP cannot carry is sent as it is", '"resources/read" = "uri" }\nis_encoded = true', '"resources/read" = "uri" }'),
        ("a resource is named by its name", '"resources/read" = "uri"', '"resources/read" = "_meta"'),
        ("an unknown method is a bad request", "code = -32601\nstatus = 404", "code = -32601\nstatus = 400"),
    ),
    *in_overlay(
        "2025-11-25",
        ("a question without a mode needs no forms", "is_default = true\n", ""),
        ("streams are resumed in each era", 'name = "polls"\nera = "handshake"', 'name = "polls"'),
    ),
    *in_overlay("2025-03-26", ("a session has an id in HTTP of each era", 'carries = "session"\nera = "handshake"', 'carries = "session"')),
    *in_overlay("2024-11-05", ("two log levels change places", '"error", "critical", "alert"', '"error", "alert", "critical"')),
    # --- what is asked and what is read ---
    *of(
        "derive",
        ("a constant is made up where any key is listed as possible", "source.says_open or source.lists_none", "source.lists_none"),
        ("a constant is made up where no key is listed", "source.says_open or source.lists_none", "source.says_open"),
        ("that there is one value alone is not said", 'if _is_constant(kind) else ""', 'if False else ""'),
    ),
    *of("nulls", ("nulls stay in all results but the usual one", "else Union(results)", "else results[0]")),
    *of(
        "overlay",
        ("of several arms one has to be there", "if not {(decision.name, at), (decision.name, f\"arm {arm}\")} <= self.used:", "if (decision.name, at) not in self.used:"),
        ("a hook without a place passes", "if not hook.at and not (hook.method and hook.kind):", "if False:"),
    ),
    *of(
        "plan",
        ("a notification is converted to a request", "or counterpart.kind != method.kind", "or False"),
        tests=("tests/codegen/releases/test_releases.py",),
    ),
    *of("load", ("a request may be a notification too", "if known is not None and known.kind != method.kind:", "if False:")),
    *of("plain", ("limits may be anything", "            if is_misused(key, value):\n", "            if False:\n"), tests=("tests/codegen/releases",)),
    *of(
        "canonical",
        ("a key may be there twice", "    if twice:\n", "    if False:\n"),
        ("half a character is written", "if half := HALF.search(canonical_text(schema)):", "if half := None:"),
        ("a mark at the start is no JSON", '"utf-8-sig"', '"utf-8"'),
        tests=("tests/codegen/test_pull.py",),
    ),
    *of("pull", ("what the revision before had is new", "if (definition, field) not in before:", "if True:")),
    # --- what is written for people ---
    *of(
        "bindings",
        ("the sentence of a docstring is there twice", 'first = f"{said}\\n\\n" if said else ""', 'first = f"{said}\\n\\n" * 2 if said else ""'),
        ("fields are described twice", "return f'{text}\\n\\n\\ndescribe(__name__, \"{schema.revision}\", WORDS)\\n'", "return f'{text}\\n\\n\\n' + f'describe(__name__, \"{schema.revision}\", WORDS)\\n' * 2"),
        ("changes are told from the last to the first", "changed.insert(0, newer.revision)", "changed.append(newer.revision)"),
        ("a definition is as old as its last change", "        since = older.revision\n", "        since = newer.revision\n"),
        ("pages are linked that there are not", "schema.revision >= FIRST_WITH_SCHEMA_PAGE", "True"),
        tests=(WRITTEN, SPEC),
    ),
    *of(
        "words",
        ("required fields stand where the order says", "(name not in required, order.index(name))", "order.index(name)"),
        ("a wording is for the revision after its own", "if since <= revision and said]", "if since < revision and said]"),
        ("a field of one definition needs no words", "if len(names) == 1]", "if len(names) == 0]"),
        ("a field of several definitions is asked about in the first", "if len(names) > 1)", "if len(names) > 99)"),
        ("frames need words of their own", "if name in told or words", "if words"),
        tests=(WRITTEN, SPEC),
    ),
    *of(
        "diff",
        ("what became required became optional", '"became required" if new.required else "became optional"', '"became optional" if new.required else "became required"'),
        ("other limits are no change", "if limits(one) != limits(two):", "if False:"),
        ("a value that came is gone", "f\"the value {value!r}\", \"value-added\")", "f\"the value {value!r}\", \"value-removed\")"),
    ),
    *of(
        "plan",
        ("what is gone came later", 'f"before {way.source.revision}" if way.direction == "down"', 'f"before {way.source.revision}" if way.direction == "up"'),
        ("a method that is gone is asked about among all others", "tuple(first or undecided.values())", "tuple(undecided.values())"),
        tests=("tests/codegen/test_skeleton.py", "tests/codegen/test_steps.py", GOLDEN),
    ),
    *of(
        "spelling",
        ("one place more is left out of a docstring", "and {len(self.labels) - MOST_LABELS} more", "and {len(self.labels)} more"),
        ("any number of places is named", '", ".join(self.labels[:MOST_LABELS])', '", ".join(self.labels)'),
        tests=(WRITTEN, GOLDEN),
    ),
    *of(
        "derive",
        ("what fills a field in is not said", "            parts.entries[name] = decision.name\n", ""),
        ("what the way up fills in is a loss on the way down", 'parts.fills[name] = self.filled[site.target_at] = decision.arguments.get("value")', 'parts.fills[name] = decision.arguments.get("value")'),
        tests=(WRITTEN, GOLDEN),
    ),
    *of(
        "nodes",
        ("items with guarded keys pass", "*self.forgotten, *self.guards, *self.members", "*self.forgotten, *self.members"),
        ("items with hooks pass", "(*hooks, *self.drops", "(*self.drops"),
        tests=(GOLDEN,),
    ),
    *of(
        "docs",
        ("a page says that more methods pass", "untouched=len(shared) - len(touched)", "untouched=len(shared)"),
        ("what came went", "came, went = len(newer - older), len(older - newer)", "came, went = len(older - newer), len(newer - older)"),
        ("decisions are told in both directions", "for decision in overlay.decisions if decision.direction == direction", "for decision in overlay.decisions"),
        tests=(WRITTEN, "tests/docs"),
    ),
    *of(
        "canonical",
        ("a field called description is prose", 'return {name: _schema(schema) for name, schema in value.items()}', "return _schema(value)"),
        ("constants are read as schemas", "    if keyword in DATA:\n        return value\n", ""),
        tests=("tests/codegen/test_pull.py",),
    ),
    *of(
        "pull",
        ("other bytes are pinned to the old commit", '(old.commit if old and old.upstream_sha256 in ("", sha256_hex(data)) else "")', '(old.commit if old else "")'),
        ("the month may be thirteen", "datetime.date.fromisoformat(revision)", "str(revision)"),
    ),
    *of(
        "pins",
        ("schemas may be edited", "        if found != pin.sha256:\n", "        if False:\n"),
        tests=("tests/codegen/test_pull.py", "tests/codegen/test_regen.py"),
    ),
    *of(
        "regen",
        ("files that nobody writes stay", "orphans=tuple(sorted(present - output.keys()))", "orphans=()"),
        ("a part of the tree is compared", 'OWNED = (GENERATED, "docs/steps")', 'OWNED = (GENERATED,)'),
    ),
    *of(
        "protocol",
        ("an entry for all overrules that of one", 'key=lambda entry: not entry[0].startswith("*")', 'key=lambda entry: entry[0].startswith("*")'),
        ("a capability has no parts", 'return f"{feature}.{action}" if action in members else feature', "return feature"),
        tests=("tests/codegen/test_facts.py", SPEC),
    ),
    *of(
        "type_facts",
        ("a string may be as long as it likes elsewhere", "type_.min_length <= len(value) and", "True and"),
        ("a value in an object may be absent", "and all(key in value for key, field in fields.items() if field.required)", "and True"),
        ("a list of one or more is any list", '(type_.min_items or None, "at least {} items"), ', ""),
        ("a longer string fits", "source.max_length is not None and source.max_length <= target.max_length", "source.max_length is not None"),
        tests=("tests/codegen/test_diff.py",),
    ),
    *in_file(
        STEPS,
        ("functions are written twice", "{{ functions }}\n", "{{ functions }}\n{{ functions }}\n"),
    ),
    *in_file(
        "codegen/templates/dragoman_spec/direction.jinja",
        ("a table has each entry twice", "        {{ name|py }}: {{ function }},\n", "        {{ name|py }}: {{ function }},\n        {{ name|py }}: {{ function }},\n"),
        ("errors are repaired twice", "lambda x, method, out: {{ way.error(error) }}),\n", "lambda x, method, out: {{ way.error(error) }}),\n        ErrorRepair({{ error.codes[0] }}, {{ error.codes[1] }}, lambda x, method, out: {{ way.error(error) }}),\n"),
        ("the entries of errors are not named", "{{ entry(error.name) -}}\n", ""),
    ),
    *of(
        "bodies",
        ("the entries of fields are not named", 'entry = [one_line(f"# {node.entries[key]}")] if key in node.entries else []', "entry: list[str] = []"),
        ("a field that must be there is looked for twice", "for key in node.demands:", "for key in (*node.demands, *node.demands):"),
        ("a field that may be null is looked at", '"v is not None and k in y" if node.extra_null_passes', '"k in y" if node.extra_null_passes'),
        ("what is not valid in the end goes before it is mended", "lines = [*mended, *_block(f\"if {wrong}:\", lines)]", "lines = [*lines, *mended]"),
        ("an emptied object that was empty goes", "if w == {} and v != {}:", "if w == {}:"),
        ("what is made is made again", '_block("if v is None:", [f"w = {made}"]), *_block("else:", [f"w = {work}"])', '_block("if True:", [f"w = {made}"])'),
        tests=(WRITTEN, GOLDEN),
    ),
    *in_file(
        MODEL,
        ("the sentence of a field is there twice", '    """{{ field.docstring }}{{', '    """{{ field.docstring }}"""\n    """{{ field.docstring }}{{'),
    ),
    *in_file(
        PAGE,
        ("a page tells decisions twice", "{% for hook in way.hooks %}\n", "{% for decision in way.decisions %}\n- **{{ decision.name }}**: again.\n{% endfor %}\n{% for hook in way.hooks %}\n"),
        ("an entry that nobody has looked at looks like others", '{{ "" if decision.reviewed else " (not reviewed)" }}', ""),
        ("reasons are not given", "{{ verb(decision) }}. {{ decision.reason }}", "{{ verb(decision) }}."),
    ),
]  # fmt: skip
