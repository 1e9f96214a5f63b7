"""Typed models of one revision to typed models of another. The only module beside the models that needs pydantic."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

from pydantic import ValidationError

from ._base import Model
from ._locate import choose
from ._validation import _problems, adapter
from .errors import MethodNeeded, TranslationError, Untranslatable
from .losses import Loss
from .revisions import REVISIONS, load
from .translation import Translator, translator


class LossyConversion(UserWarning):
    """A conversion lost something, and its losses were not asked for."""


def convert_model(
    model: Model,
    *,
    to: str,
    method: str | None,
    profile: str,
    rules: Collection[str] | None,
    losses: list[Loss] | None,
) -> Any:
    """Do what `conversions.convert` says."""
    source, name = _origin(model)
    if source == to:
        return model
    chain = translator(source, to, profile=profile, rules=rules)
    new_name, value, found = _converted(chain, name, model.model_dump(), method)
    target = getattr(load(to), new_name, None) if new_name is not None else None
    if target is None:
        raise Untranslatable(f"{to} has no {name}", source=source, target=to)
    if "jsonrpc" in getattr(target, "model_fields", ()) and "jsonrpc" not in value:
        value = {"jsonrpc": "2.0", **value}
    try:
        converted = adapter(to, target.__name__).validate_python(value)
    except ValidationError:
        problem = choose(_problems(value, target.__name__, (), to, allow_null=False))
        where = {"source": source, "target": to, "method": name}
        raise TranslationError(problem.pointer, problem.expected, problem.found, **where) from None
    if losses is not None:
        losses += found
    elif found:
        said = ", ".join(f"{loss.pointer or '/'} {loss.kind}" for loss in found[:5])
        warnings.warn(f"{name} from {source} to {to} lost: {said}", LossyConversion, stacklevel=3)
    return converted


def _converted(chain: Translator, name: str, value: Any, method: str | None) -> tuple[str | None, Any, Sequence[Loss]]:
    """The name and value of a definition in the target, and the losses; frames are converted as their method says."""
    kinds = [kind for kind, envelope in load(chain.source).ENVELOPES.items() if envelope == name]
    if not kinds:
        return chain.definition(name, value)
    method = value.get("method", method)
    if kinds == ["result"] and method is None and any(way[chain.profile].results for way in chain.steps):
        raise MethodNeeded(chain.target)
    if kinds != ["error"] and method not in load(chain.source).METHODS:
        _, value, losses = chain.definition(name, value)
        return load(chain.target).ENVELOPES[kinds[0]], value, losses
    done = chain.translate(value, method)
    return (load(chain.target).ENVELOPES[kinds[0]] if done.frame is not None else None), done.frame, done.losses


def _origin(model: Model) -> tuple[str, str]:
    """The revision and definition that a model is of, by the module of its nearest generated class."""
    modules = {"dragoman_spec.v" + revision.replace("-", "_") + ".models": revision for revision in REVISIONS}
    for kind in type(model).__mro__:
        if kind.__module__ in modules:
            return modules[kind.__module__], kind.__name__
    raise TypeError(f"{type(model).__name__} is no model of dragoman_spec")
