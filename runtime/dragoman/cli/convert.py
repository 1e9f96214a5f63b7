"""`dragoman convert`: JSON-RPC frames of one revision in, the same frames of another out.

One line in, one line out, in order and at once, so that it works inside a pipe. What is lost goes to a file, what
people want to know to stderr, and only frames to stdout. Lives here: lines, validation, error frames, the report.
Translation itself is `dragoman_spec`'s; kinds of frames and exact JSON are the envelope's. Called by `dragoman.cli`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Final

import dragoman_spec
from dragoman.cli.ink import REVISIONS, Style, complain, write_painted
from dragoman.cli.options import add_translation_arguments, chosen_rules, revision
from dragoman.core.batches import explain_batches, has_batches
from dragoman.core.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.envelope import Malformed, classify, encode_error, key_of
from dragoman.core.exact_json import decode, encode
from dragoman.core.translate import OnLoss, refuse_losses
from dragoman.errors import MethodNeeded, ProtocolError, TranslationError, ValidationFailed

EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2

_MARKS: Final = {**REVISIONS, r"[1-9]\d* refused": Style.ERROR, r"^losses: (?!none).*": Style.LOSS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `convert`."""
    parser.add_argument("--from", dest="source", required=True, type=revision, metavar="REV", help="revision on stdin")
    parser.epilog = f"Revisions: {', '.join(dragoman_spec.REVISIONS)}."
    parser.add_argument("--to", dest="target", required=True, type=revision, metavar="REV", help="revision on stdout")
    parser.add_argument("--method", metavar="M", help="the request that response frames answer, e.g. tools/list")
    add_translation_arguments(parser)
    parser.add_argument("--losses", metavar="FILE", help="write what was lost there, one JSON object a line")
    parser.add_argument(
        "--on-loss",
        choices=("report", "refuse", "refuse-all"),
        default="report",
        help="what to do about a frame that cannot be carried whole: report what is lost; or put an error in its "
        "place, if the loss changes its meaning, or for any loss (default: %(default)s)",
    )
    parser.add_argument("--no-validate", action="store_true", help="do not check frames against the source revision")


def run(args: argparse.Namespace) -> int:
    """Convert stdin to stdout; 0 if every frame went through, 1 if some line was refused or invalid."""
    job = Job(
        translator=dragoman_spec.translator(args.source, args.target, profile=args.profile, rules=chosen_rules(args)),
        method=args.method,
        validate=not args.no_validate,
        on_loss=OnLoss.WARN if args.on_loss == "report" else OnLoss(args.on_loss),
    )
    if sys.stdin is None:
        complain("dragoman convert: expected frames on stdin, found it closed")
        return EXIT_USAGE
    report = Report()
    with contextlib.ExitStack() as stack:
        try:
            losses = stack.enter_context(open(args.losses, "wb", buffering=0)) if args.losses else None
        except OSError as error:
            complain(f"dragoman convert: cannot write {args.losses}: {error.strerror}")
            return EXIT_USAGE
        _pump(job, report, losses)
    write_painted(f"{report.summary(job)}\n", _MARKS, sys.stderr)
    return EXIT_REFUSED if report.refused else 0


def _pump(job: Job, report: Report, losses: IO[bytes] | None) -> None:
    out = sys.stdout.buffer
    for outcome in convert_lines(job, sys.stdin.buffer):
        report.count(outcome)
        for problem in outcome.problems:
            complain(f"line {outcome.line}: {problem}")
        if outcome.is_fragment and not report.hinted:
            report.hinted = True
            print(
                "expected one frame a line; a frame that is spread over lines has to be joined first", file=sys.stderr
            )
        if losses is not None and outcome.losses:
            _write_losses(losses, outcome)
        if outcome.frames:
            out.write(b"".join(frame + b"\n" for frame in outcome.frames))
            out.flush()


def _write_losses(file: IO[bytes], outcome: Conversion) -> None:
    try:
        file.write(b"".join(encode({"line": outcome.line, **loss}) + b"\n" for loss in outcome.losses))
    except OSError as error:
        raise OSError(error.errno, f"{file.name}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Job:
    """What to convert, and how.

    Attributes:
        translator: The translation from the source to the target revision.
        method: The request that result frames answer, if the caller knows one.
        validate: Whether frames are held against the source revision first.
        on_loss: Whether frames that lose something are refused.
    """

    translator: dragoman_spec.Translator
    method: str | None = None
    validate: bool = True
    on_loss: OnLoss = OnLoss.WARN

    @property
    def changes_revision(self) -> bool:
        """Whether source and target differ."""
        return self.translator.source != self.translator.target


@dataclass(slots=True)
class Conversion:
    """What became of one line.

    Attributes:
        line: Its number, from 1.
        frames: What goes to stdout, without line endings.
        losses: `{"pointer", "kind", "bytes", "cosmetic"}` each, pointers into the line's own frame.
        problems: Why frames of it were refused, for a person.
        counts: Frames that went out changed (`converted`), as the bytes that came in (`unchanged`), or that the other
            side never sees (`swallowed`).
        is_fragment: Whether it is not a frame, but looks like the beginning of one that is spread over lines.
    """

    line: int
    frames: list[bytes] = field(default_factory=list)
    losses: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    is_fragment: bool = False


@dataclass(slots=True)
class Report:
    """Counts of frames and losses, for the summary at the end."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    losses: Counter[str] = field(default_factory=Counter)
    lost_bytes: Counter[str] = field(default_factory=Counter)
    hinted: bool = False

    def count(self, outcome: Conversion) -> None:
        """Add one line's outcome."""
        self.counts += outcome.counts
        self.refused += len(outcome.problems)
        for loss in outcome.losses:
            self.losses[loss["kind"]] += 1
            self.lost_bytes[loss["kind"]] += loss["bytes"]

    def summary(self, job: Job) -> str:
        """Say in two lines what was done and what was lost."""
        translator = job.translator
        done = ", ".join(f"{self.counts[what]} {what}" for what in ("converted", "unchanged", "swallowed"))
        lost = ", ".join(
            f"{count} {kind} ({self.lost_bytes[kind]:,} bytes)" for kind, count in sorted(self.losses.items())
        )
        return (
            f"{translator.source} to {translator.target} ({translator.profile}): {done}, {self.refused} refused\n"
            f"losses: {lost or 'none'}"
        )


def convert_lines(job: Job, lines: Iterable[bytes]) -> Iterator[Conversion]:
    """Convert lines one by one, each as soon as it is there; blank ones give nothing."""
    for number, line in enumerate(lines, 1):
        if not line.isspace():
            yield convert_line(job, number, line.rstrip(b"\r\n"))


def convert_line(job: Job, number: int, line: bytes) -> Conversion:
    """Convert one line: a frame, or where the revision has batches one of these."""
    outcome = Conversion(number)
    try:
        value = decode(line)
    except ValueError as error:
        outcome.is_fragment = line.strip()[-1:] in (b"{", b"[", b",")
        _refuse(job, outcome, _salvage_id(line), ProtocolError(PARSE_ERROR, str(error)), outcome.frames.append)
        return outcome
    if isinstance(value, list):
        _convert_batch(job, outcome, value, line)
    else:
        _convert_frame(job, outcome, value, line, "", outcome.frames.append)
    return outcome


def _salvage_id(line: bytes) -> Any:
    """Read a line that is not JSON only for a number in it (`NaN`, or one beyond what can be held) for its id."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and isinstance(value.get("id"), float) and not math.isfinite(value["id"]):
        return None
    return value


def _convert_batch(job: Job, outcome: Conversion, members: list[Any], line: bytes) -> None:
    """Pass a batch on as it is where batches are known, split it elsewhere."""
    refusal = _batch_fault(job, members)
    if refusal is not None:
        _refuse(job, outcome, None, refusal, outcome.frames.append)
        return
    out: list[bytes] = []
    for index, member in enumerate(members):
        _convert_frame(job, outcome, member, encode(member), f"/{index}", out.append)
    if job.changes_revision:
        outcome.frames += out
    elif outcome.problems:
        outcome.frames.append(b"[" + b",".join(out) + b"]")
    else:
        outcome.frames.append(line)


def _batch_fault(job: Job, members: list[Any]) -> ProtocolError | None:
    if not has_batches(job.translator.source):
        found = f"expected one frame, found an array: {explain_batches()}"
        return ProtocolError(INVALID_REQUEST, found, {"pointer": ""})
    if not members:
        return ProtocolError(INVALID_REQUEST, "expected a batch of at least one frame, found none", {"pointer": ""})
    for index, member in enumerate(members):
        # "The initialize request MUST NOT be part of a JSON-RPC batch" (2025-03-26, basic/lifecycle).
        if isinstance(member, dict) and member.get("method") == "initialize":
            return ProtocolError(INVALID_REQUEST, "initialize must not be part of a batch", {"pointer": f"/{index}"})
    return None


def _convert_frame(
    job: Job, outcome: Conversion, frame: Any, raw: bytes, prefix: str, emit: Callable[[bytes], None]
) -> None:
    """Convert one frame; `prefix` is its JSON pointer in the line."""
    try:
        _check(job, frame, raw)
        translation = job.translator.translate(frame, job.method)
        _check_losses(job, frame, translation)
        out = raw if translation.frame is frame else _encode(translation.frame)
    except TranslationError as error:
        _refuse(job, outcome, frame, ProtocolError(error.code, str(error), error.data), emit)
        return
    except ProtocolError as refusal:
        _refuse(job, outcome, frame, refusal, emit)
        return
    outcome.losses += (
        {"pointer": prefix + loss.pointer, "kind": loss.kind, "bytes": loss.bytes, "cosmetic": loss.cosmetic}
        for loss in translation.losses
    )
    if out is None:
        outcome.counts["swallowed"] += 1
        if all(loss.kind != "swallowed" for loss in translation.losses):
            outcome.losses.append({"pointer": prefix, "kind": "swallowed", "bytes": len(raw), "cosmetic": False})
        return
    outcome.counts["unchanged" if out is raw else "converted"] += 1
    emit(out)


def _encode(frame: dict[str, Any] | None) -> bytes | None:
    try:
        return None if frame is None else encode(frame)
    except ValueError as error:
        raise ProtocolError(INVALID_REQUEST, str(error)) from error


def _check(job: Job, frame: Any, raw: bytes) -> None:
    """Refuse what is not a frame or not a valid one, and a result if nobody says of which request."""
    kind = classify(raw, frame)
    if isinstance(kind, Malformed):
        raise ProtocolError(kind.code, kind.reason, {"pointer": ""})
    if kind.kind == "result" and job.method is None and job.changes_revision:
        raise ProtocolError(
            INVALID_REQUEST,
            "a result does not say what it answers: give --method, e.g. --method tools/list",
            {"pointer": "/result"},
        )
    if not job.validate:
        return
    source = job.translator.source
    try:
        dragoman_spec.validate(frame, source, job.method, allow_null=True)
    except ValidationFailed as error:
        raise ProtocolError(
            _code(error.pointer),
            str(error),
            {"pointer": error.pointer, "expected": error.expected, "found": error.found},
        ) from error
    except MethodNeeded:
        pass  # Its envelope is right, and between equal revisions nothing in it changes.


def _check_losses(job: Job, frame: dict[str, Any], translation: dragoman_spec.Translation) -> None:
    """Refuse a frame for what it would lose, if the user wants that."""
    method = frame.get("method", job.method)
    kind = "response" if "method" not in frame else "request" if "id" in frame else "notification"
    way = {"method": method, "source": job.translator.source, "target": job.translator.target}
    refusal = refuse_losses(job.on_loss, translation, kind, way)
    if refusal is not None:
        raise ProtocolError(refusal.code, refusal.message, refusal.data)


def _code(pointer: str) -> int:
    """Return the JSON-RPC error code for something wrong at a pointer into a frame."""
    if pointer == "/method":
        return METHOD_NOT_FOUND
    return INVALID_PARAMS if pointer.startswith(("/params", "/result")) else INVALID_REQUEST


def _refuse(job: Job, outcome: Conversion, frame: Any, refusal: ProtocolError, emit: Callable[[bytes], None]) -> None:
    key = key_of(frame.get("id")) if isinstance(frame, dict) else None
    data = {"source": job.translator.source, "target": job.translator.target, **(refusal.data or {})}
    emit(encode_error(key, refusal.code, refusal.message, data).rstrip(b"\n"))
    outcome.problems.append(refusal.message)
