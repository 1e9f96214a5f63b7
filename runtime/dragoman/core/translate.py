"""One direction of a session: frames of one revision in, frames of another out.

Lives here: asking the composed translator whether a frame is touched, decoding only then, reporting losses and turning
refusals into the error to answer with. Must not: know how anything is translated (that is `dragoman_spec`), nor who
waits for what. Called by `core.edges.exchange`.

Theory of operation. `dragoman_spec.translator(source, target)` composes the steps once and answers, from (kind, method)
alone, whether any of them touches such a frame. Most are touched by none and pass as the bytes they came as. The rest
are decoded, translated, and encoded again only if the translator gave a different object back. What it could not carry
comes as losses: logged on one line a frame, counted, and refused if the user asked for that.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, cast

from dragoman.core.codes import INTERNAL_ERROR, PARSE_ERROR
from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Refusal, new_frame, written
from dragoman.core.exact_json import decode, encode_line, may_hold_long_integer, skim
from dragoman.core.unchecked import find
from dragoman.errors import TranslationError, Untranslatable
from dragoman_spec import Translation
from dragoman_spec.losses import Loss, LossGroup
from dragoman_spec.translation import Kind

logger = logging.getLogger("dragoman.translate")


_GROUPS_SHOWN = 8
_NAME_SHOWN = 80  # characters

_SHAPES_KEPT = 1024
"""How many shapes of losses are told apart in a session: peers choose the names in them."""

_INDEX = re.compile(r"/\d+(?=/|\Z)")


class OnLoss(Enum):
    """What to do about a frame that cannot be carried whole.

    Attributes:
        WARN: Log the losses, at INFO if they are cosmetic, and carry the rest.
        REFUSE: Refuse the frame if a loss changes what is said; cosmetic ones are logged as for `WARN`.
        REFUSE_ALL: Refuse the frame for any loss.
        SILENT: Only count the losses.
    """

    WARN = "warn"
    REFUSE = "refuse"
    REFUSE_ALL = "refuse-all"
    SILENT = "silent"


class Translator(Protocol):
    """What is needed of `dragoman_spec.Translator`."""

    @property
    def source(self) -> str:
        """Revision of the frames given."""

    @property
    def target(self) -> str:
        """Revision of the frames returned."""

    @property
    def identity(self) -> bool:
        """Whether no frame of any kind or method is touched."""

    def touches(self, kind: Kind, method: str | None) -> bool:
        """Whether a frame of this kind and method can come out different."""

    def translate(self, frame: Any, method: str | None = None) -> Translation:
        """Translate one frame; `method` names the request that a response answers."""


class Counters:
    """What a session has seen, for the closing line of the log; `tell` is told of each loss besides."""

    passed: int = 0
    translated: int = 0
    lossy: int = 0
    losses: int = 0
    lossy_as_before: int = 0
    refused: int = 0
    swallowed: int = 0
    malformed: int = 0
    unmatched: int = 0
    excess: int = 0
    timed_out: int = 0
    tell: Callable[[str, str, Sequence[LossGroup]], None] | None = None

    def describe(self) -> str:
        """Return the counters that are not zero, on one line."""
        return (
            ", ".join(
                f"{n} {name.replace('_', ' ')}"
                for name in self.__annotations__
                if (n := getattr(self, name)) and name != "tell"
            )
            or "no frames"
        )


class Crossing(NamedTuple):
    """A frame that was translated, for whoever watches.

    Attributes:
        side: Who sent it.
        source: The revision that it came in.
        target: The revision that it was to be sent in.
        method: Its method, or the one that was asked for where it is a response.
        before: As it came.
        after: As it goes on; a refusal where it does not, None where the target has no such frame.
        losses: What did not cross.
    """

    side: Side
    source: str
    target: str
    method: str | None
    before: Frame
    after: Frame | Refusal | None
    losses: Sequence[Loss]


class Adaptor:
    """Carries the frames of one direction across.

    Attributes:
        translator: The composed steps; None where there are none, or are not known yet: everything passes.
        on_loss: What to do about losses.
        counters: Shared by both directions of a session.
        side: Who sends the frames.
        watch: Told of each frame that does not pass as it came; None where nobody wants to know.
        writes: Whether a frame that came out different is written here. If not, its `raw` is empty: whoever takes it
            changes more of it, and writes it then.
    """

    __slots__ = ("_lost", "_said", "_touched", "counters", "on_loss", "side", "translator", "watch", "writes")

    def __init__(
        self,
        translator: Translator | None,
        on_loss: OnLoss,
        counters: Counters,
        side: Side = Side.CLIENT,
        watch: Callable[[Crossing], None] | None = None,
    ) -> None:
        self.translator = translator
        self.on_loss = on_loss
        self.counters = counters
        self.side = side
        self.watch = watch
        self.writes = True
        self._touched: dict[tuple[str, str | None], bool] = {}
        self._said: set[tuple[str, str | None, str, str]] = set()
        self._lost: Sequence[Loss] = ()

    def adapt(self, frame: Frame, method: str | None) -> Frame | Refusal | None:
        """Carry one frame across.

        Args:
            frame: A request, notification or response of the source revision.
            method: Its method, or the one that was asked for where it is a response; None if nobody knows.

        Returns:
            The frame to send on, None where the target revision has no such frame and none is missed, or a refusal.
        """
        translator = self.translator
        if translator is None:  # as `_pass` does
            self.counters.passed += 1
            return frame if frame.raw else written(frame)
        question = (frame.kind, method)
        touched = self._touched.get(question)
        if touched is None:
            touched = translator.touches(cast("Kind", frame.kind), method)
            if len(self._touched) < 1024:  # peers choose method names: what they can fill has a bound
                self._touched[question] = touched
        if not touched:
            return self._pass(frame)
        return (self._translate if self.watch is None else self._show)(translator, frame, method)

    def cross(self, kind: str, key: bytes, method: str, body: dict[str, Any]) -> Frame | Refusal | None:
        """Carry across what is decoded and not written yet: as `adapt` does, for a request or a response.

        Args:
            kind: Of the frame.
            key: Its id, which the body has too.
            method: Its method, or the one that was asked for.
            body: What it says; nobody else changes it.
        """
        translator = self.translator
        if translator is None or self.watch is not None or not self._touched.get((kind, method)):
            asks = method if kind == "request" else None
            return self.adapt(new_frame(Frame, (b"", kind, key, asks, body, None, (), "", (), None, b"")), method)
        try:
            translation = translator.translate(body, method)
            crossed = translation.frame
            line = b"" if crossed is None else encode_line(crossed)
        except Exception as error:
            return self._explain(kind, method, error)
        if not translation.is_lossless:
            refusal = self._report(kind, method, translation)
            if refusal is not None:
                return refusal
        if crossed is None:
            self._note_swallowed(kind, method)
            return None
        if crossed is body:
            self.counters.passed += 1
        else:
            self.counters.translated += 1
        return new_frame(Frame, (line, kind, key, crossed.get("method"), None, None, (), "", (), None, b""))

    def _pass(self, frame: Frame) -> Frame:
        self.counters.passed += 1
        return frame if frame.raw else written(frame)

    def _show(self, translator: Translator, frame: Frame, method: str | None) -> Frame | Refusal | None:
        """Translate a frame, and report it to the watcher."""
        self._lost = ()
        frame = written(frame)
        adapted = self._translate(translator, frame, method)
        if self.watch is not None and (adapted is not frame or self._lost):
            way = translator.source, translator.target
            self.watch(Crossing(self.side, *way, method, frame, adapted, self._lost))
        return adapted

    def _translate(self, translator: Translator, frame: Frame, method: str | None) -> Frame | Refusal | None:
        body = frame.body
        try:
            if body is None:
                body, translation = _translate_line(translator, frame.raw, method)
            else:
                translation = translator.translate(body, method)
            translated = None if translation.frame is None else self._encode(frame, body, translation.frame)
        except Exception as error:
            return self._explain(frame.kind, method, error)
        if not translation.is_lossless:
            refusal = self._report(frame.kind, method, translation)
            if refusal is not None:
                return refusal
        if translated is None:
            self._note_swallowed(frame.kind, method)
        return translated

    def _explain(self, kind: str, method: str | None, error: Exception) -> Refusal:
        """Refuse what cannot be translated."""
        if isinstance(error, Untranslatable):
            return self._refuse(kind, method, Refusal(error.code, str(error), error.data))
        if isinstance(error, _NotJson):
            return self._refuse(kind, method, Refusal(PARSE_ERROR, str(error), {}))
        if isinstance(error, TranslationError):
            code = error.code if kind == "request" else INTERNAL_ERROR
            return self._refuse(kind, method, Refusal(code, str(error), error.data))
        # A defect of ours must not take the session down.
        logger.error("%s %s: the translation itself failed", method, kind, exc_info=error)
        message = f"translating {method or 'a frame'} failed: {type(error).__name__}"
        return self._refuse(kind, method, Refusal(INTERNAL_ERROR, message, self._where(method)))

    def _note_swallowed(self, kind: str, method: str | None) -> None:
        self.counters.swallowed += 1
        logger.info("%s %s left out: revision %s has no such frame", method, kind, self._where(method)["target"])

    def _encode(self, frame: Frame, body: Any, translated: Any) -> Frame:
        """Return the frame that is sent on; what it says now may have another method."""
        if translated is body:
            return self._pass(frame)
        self.counters.translated += 1
        method = frame.method and translated["method"]
        line, kept = (encode_line(translated), None) if self.writes else (b"", translated)
        return new_frame(Frame, (line, frame.kind, frame.key, method, kept, frame.stream, (), "", (), None, b""))

    def _refuse(self, kind: str, method: str | None, refusal: Refusal) -> Refusal:
        self.counters.refused += 1
        logger.warning("%s %s refused: %s", method, kind, refusal.message)
        return refusal

    def _report(self, kind: str, method: str | None, translation: Translation) -> Refusal | None:
        count = translation.count_losses()
        if not count:
            return None
        self.counters.lossy += 1
        self.counters.losses += count
        if self.counters.tell is not None and self.translator is not None:
            self.counters.tell(self.translator.source, self.translator.target, translation.group_losses())
        if self.watch is not None:
            self._lost = translation.losses
        refusal = refuse_losses(self.on_loss, translation, kind, self._where(method))
        if refusal is not None:
            return self._refuse(kind, method, refusal)
        if self.on_loss is not OnLoss.SILENT and logger.isEnabledFor(logging.WARNING):
            groups = translation.group_losses(cosmetic=logger.isEnabledFor(logging.INFO))
            if groups:
                self._say(kind, method, groups)
        return None

    def _say(self, kind: str, method: str | None, groups: list[LossGroup]) -> None:
        """Log losses; those of a shape that was logged before are only counted, or each `tools/list` would say them."""
        new = [group for group in groups if self._is_new(kind, method, group)]
        if not new:
            self.counters.lossy_as_before += 1  # what the first of them lost is in the log
        way = self._where(method)
        for level, cosmetic in ((logging.WARNING, False), (logging.INFO, True)):
            said = [group for group in new if group.cosmetic is cosmetic]
            if said:
                words = describe_losses(said)
                logger.log(level, "%s %s, %s to %s: %s", method, kind, way["source"], way["target"], words)

    def _is_new(self, kind: str, method: str | None, group: LossGroup) -> bool:
        shape = (kind, method, group.kind, _INDEX.sub("/*", group.pointer))
        if shape in self._said or len(self._said) >= _SHAPES_KEPT:
            return False
        self._said.add(shape)
        return True

    def _where(self, method: str | None) -> dict[str, Any]:
        translator = self.translator
        assert translator is not None
        return {"method": method, "source": translator.source, "target": translator.target}


class _NotJson(Exception):
    """A line cannot be decoded."""


def _translate_line(translator: Translator, line: bytes, method: str | None) -> tuple[Any, Translation]:
    """Translate what was only skimmed, unless it may hold numbers that matter: then decode it exactly first.

    They do not matter where nothing changes: the bytes that came go on then, and what takes a float takes an integer.

    Returns:
        The body that was translated, and what came of it.

    Raises:
        _NotJson: It cannot be decoded.
        TranslationError: As the translator does.
    """
    try:
        body = skim(line)
    except ValueError as error:
        raise _NotJson(str(error)) from None
    try:
        translation = translator.translate(body, method)
        if translation.frame is body or not may_hold_long_integer(line):
            return body, translation
    except TranslationError:
        if not may_hold_long_integer(line):
            raise
    try:
        body = decode(line)
    except ValueError as error:
        raise Untranslatable(str(error), code=PARSE_ERROR) from None
    return body, translator.translate(body, method)


def refuse_losses(on_loss: OnLoss, translation: Translation, kind: str, way: dict[str, Any]) -> Refusal | None:
    """Refuse a frame for what it would lose, if the user wants that.

    Args:
        on_loss: What the user wants.
        translation: The frame and its losses.
        kind: Kind of the frame.
        way: `method`, `source` and `target`, which go into the refusal's data.

    Returns:
        The refusal, which names the losses that are the reason for it; None if the frame may go on.
    """
    # `initialize` is where capabilities are *meant* to be left out: it is never refused for its losses.
    if on_loss not in (OnLoss.REFUSE, OnLoss.REFUSE_ALL) or way["method"] == "initialize":
        return None
    cosmetic = on_loss is OnLoss.REFUSE_ALL
    count = translation.count_losses(cosmetic=cosmetic)
    if not count:
        return None
    message = f"translating this {kind} from {way['source']} to {way['target']} would lose {count} value(s): "
    message += describe_losses(translation.group_losses(cosmetic=cosmetic))
    reasons = [loss for loss in translation.losses if cosmetic or not loss.cosmetic]
    listed = [{"pointer": loss.pointer, "kind": loss.kind, "bytes": loss.bytes} for loss in reasons]
    return Refusal(INTERNAL_ERROR, message, {**way, "losses": listed})


def report_losses(what: str, way: tuple[str, str], losses: Sequence[Loss], counters: Counters, on_loss: OnLoss) -> None:
    """Count losses that no frame had, and log them.

    Args:
        what: What they were part of.
        way: The revisions of both sides.
        losses: At least one.
        counters: Where they are counted.
        on_loss: What the user wants; nothing can be refused here.
    """
    groups = [LossGroup(loss.pointer, loss.kind, [loss.value], loss.cosmetic) for loss in losses]
    counters.lossy += 1
    counters.losses += len(groups)
    if counters.tell is not None:
        counters.tell(*way, groups)
    if on_loss is not OnLoss.SILENT:
        logger.warning("%s, between %s and %s: %s", what, *way, describe_losses(groups))


def describe_losses(groups: list[LossGroup]) -> str:
    """Name losses on one line, the first few groups: kind, pointer, how many and their size; never a value.

    What is hidden is there for nobody to see, so of that the names are said, too.
    """
    shown = ", ".join(_describe_group(group) for group in groups[:_GROUPS_SHOWN])
    left = sum(len(group.values) for group in groups[_GROUPS_SHOWN:])
    return f"{shown} and {left} more" if left else shown


def _describe_group(group: LossGroup) -> str:
    times = f" x {len(group.values)}" if len(group.values) > 1 else ""
    found = [find(value, "name") for value in group.values[:_GROUPS_SHOWN]] if group.kind == "hidden" else []
    names = "".join(f"{name[:_NAME_SHOWN]}, " for name in found if isinstance(name, str))
    return f"{group.kind} {group.pointer}{times} ({names}{group.bytes} B)"
