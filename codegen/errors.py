"""What can go wrong while pulling schemas and generating code.

    CodegenError
    ├─ PullFailed           .source .reason            nothing usable came from there
    ├─ NotASchema           .source .reason            it came, and is no MCP schema
    ├─ UnknownRevision      .revision .reason          not a revision's name, or not one that can be pinned
    ├─ PinMismatch          .revision .expected .found the bytes are not the pinned ones
    ├─ UnknownSchemaForm    .revision .pointer .found  a construct the loader has no rule for
    │  └─ NotAName          .name                      a definition that cannot keep its name in Python
    ├─ UndecidedChange      .revision .changes         a change that needs a person's decision
    ├─ UnusedDecision       .overlay .decision .reason an overlay entry that rules on nothing, or twice
    └─ StaleOutput          .stale .missing .orphans   the generated tree is not what regen would write

Each carries its facts as fields and says in `str()` what to do next, naming the command. `python -m codegen`
prints that text and exits 1; nothing else catches these. No other module defines an exception of its own.
"""

from collections.abc import Sequence

from codegen.names import line


class CodegenError(Exception):
    """Root of everything the generator raises on purpose."""


class PullFailed(CodegenError):
    """A schema could not be fetched: unreachable, refused, absent, or cut short."""

    def __init__(self, source: str, reason: str, remedy: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"cannot get {source}: {reason}. schema/ is unchanged. {remedy}")


class NotASchema(CodegenError):
    """What was fetched is not the JSON Schema of an MCP revision."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(
            f"{source} is not the schema of an MCP revision: {reason}. schema/ is unchanged. "
            "Point --from at a directory or URL that has <revision>/schema.json in the official layout."
        )


class UnknownRevision(CodegenError):
    """The name given is no revision's name, or upstream has none of that name."""

    def __init__(self, revision: str, reason: str, remedy: str) -> None:
        self.revision = revision
        self.reason = reason
        super().__init__(f"unknown revision {revision!r}: {reason}. schema/ is unchanged. {remedy}")


class PinMismatch(CodegenError):
    """The bytes of a schema, upstream's or ours, have another sha256 than the pin."""

    def __init__(self, revision: str, source: str, expected: str, found: str, remedy: str) -> None:
        self.revision = revision
        self.source = source
        self.expected = expected
        self.found = found
        super().__init__(
            f"{source} is not the pinned schema of {revision}: expected sha256 {expected}, found {found}. {remedy}"
        )


class UnknownSchemaForm(CodegenError):
    """A schema uses a construct that the reader has no rule for."""

    def __init__(self, revision: str, pointer: str, found: str) -> None:
        self.revision = revision
        self.pointer = pointer
        self.found = found
        super().__init__(
            f"schema/{revision}/schema.json {line(pointer)}: no rule for {line(found)}. "
            "What there are rules for, and where to add one, says codegen/read/keywords.py. A defect of the upstream "
            f"file is repaired by a [[fix]] in codegen/overlays/{revision}.toml. Then run `nox -s regen`."
        )


class NotAName(UnknownSchemaForm):
    """A definition has a name that means something else in Python, or nothing."""

    def __init__(self, revision: str, pointer: str, name: str) -> None:
        super().__init__(revision, pointer, f"a definition that cannot be called {name} in Python")
        self.name = name
        self.args = (
            f"schema/{revision}/schema.json {line(pointer)}: a definition that cannot be called {line(name)} in Python."
            f" Give it a name in a [[name]] of codegen/overlays/{revision}.toml. Then run `nox -s regen`.",
        )


class UndecidedChange(CodegenError):
    """The step into a revision has changes that no diff can decide and no overlay entry rules on."""

    def __init__(
        self, revision: str, changes: Sequence[str], remedy: str, *, overlay: str = "", skeleton: str = ""
    ) -> None:
        self.revision = revision
        self.changes = tuple(changes)
        self.overlay = overlay
        self.skeleton = skeleton
        listing = "".join(f"\n  - {line(change)}" for change in self.changes)
        super().__init__(f"the step into {revision} has {len(self.changes)} undecided change(s):{listing}\n{remedy}")


class UnusedDecision(CodegenError):
    """An overlay entry matches no change, or two entries rule on the same one."""

    def __init__(self, overlay: str, decision: str, reason: str) -> None:
        self.overlay = overlay
        self.decision = decision
        self.reason = reason
        super().__init__(
            f"{overlay}: [{line(decision)}]: {line(reason)}. Correct or remove the entry, then run `nox -s regen`."
        )


class StaleOutput(CodegenError):
    """The committed output differs from what the generator would write now."""

    def __init__(self, stale: Sequence[str], missing: Sequence[str], orphans: Sequence[str]) -> None:
        self.stale = tuple(stale)
        self.missing = tuple(missing)
        self.orphans = tuple(orphans)
        kinds = (("stale", self.stale), ("missing", self.missing), ("orphan", self.orphans))
        listing = "".join(f"\n  {kind}: {path}" for kind, paths in kinds for path in paths)
        super().__init__(f"the generated tree is not up to date:{listing}\nRun `nox -s regen` and commit the result.")
