"""What a conversion costs from bytes to bytes, beside orjson alone and beside pydantic models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from pydantic import BaseModel

import dragoman_spec
from bench.measure import compare, print_timings
from bench.messages import MESSAGES, Message

SOURCE = "2025-11-25"
TARGETS = {"1 step": "2025-06-18", "3 steps": "2024-11-05"}
PROFILES = ("strict", "minimal")
BASELINE = "orjson loads + dumps"


def measure_conversions(rounds: int) -> None:
    """Measure and print every message."""
    print("Conversions, bytes to bytes (ratio to orjson loads + dumps of the same run)")
    for message in MESSAGES:
        measure(message, rounds)


def measure(message: Message, rounds: int) -> None:
    """Measure one message in every way, and print the block."""
    candidates: dict[str, Callable[[], object]] = {BASELINE: lambda: orjson.dumps(orjson.loads(message.data))}
    notes: dict[str, str] = {}
    frame = orjson.loads(message.data)
    for words, target in TARGETS.items():
        for profile in PROFILES:
            translator = dragoman_spec.translator(SOURCE, target, profile=profile)
            name = f"{words}, {profile}"
            candidates[name] = conversion(translator, message)
            losses = len(translator.translate(frame, message.method).losses)
            notes[name] = f"{losses} losses" if translator.touches("result", message.method) else "passed as bytes"
    candidates["3 steps, strict, losses read"] = with_losses(message)
    candidates["pydantic, same revision"] = through_models(message)
    print_timings(f"{message.title} ({len(message.data) / 1000:.1f} kB)", compare(candidates, rounds), notes)


def conversion(translator: Any, message: Message) -> Callable[[], object]:
    """Convert as a proxy does: bytes that no step touches pass as they are."""
    data, method, touches, translate = message.data, message.method, translator.touches, translator.translate

    def convert() -> bytes:
        if not touches("result", method):
            return data
        return orjson.dumps(translate(orjson.loads(data), method).frame)

    return convert


def with_losses(message: Message) -> Callable[[], object]:
    """Convert all the way and look at every loss: what `--on-loss warn` costs a message that lost something."""
    translator = dragoman_spec.translator(SOURCE, TARGETS["3 steps"])

    def convert() -> tuple[bytes, object]:
        translation = translator.translate(orjson.loads(message.data), message.method)
        return orjson.dumps(translation.frame), translation.losses

    return convert


def through_models(message: Message) -> Callable[[], object]:
    """Read the frame's result into its model and write it again, as an SDK does."""
    module = dragoman_spec.load(SOURCE)
    model: type[BaseModel] = getattr(module, module.METHODS[message.method].results[0])
    data = orjson.dumps(orjson.loads(message.data)["result"])
    return lambda: model.model_validate_json(data).model_dump_json()
