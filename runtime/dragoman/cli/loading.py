"""Middleware that a user names on the command line: finding it, and saying what is wrong where there is none.

Lives here: importing, making what is named with arguments, and telling apart what is around requests, what is around
notifications and what gives headers. Must not: run it. Called by `cli.middleware`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dragoman.middleware import HeaderMiddleware, Middleware, NoticeMiddleware

_METHODS: Final = ("around_request", "around_notice", "headers_to_server")


def load_middleware(named: Iterable[str], notices_named: Iterable[str]) -> dict[str, Any]:
    """Return what is named, as `ProxyConfig` calls it by what it does, the outermost first.

    Args:
        named: `MODULE:NAME` each; what it names may have `around_request`, `around_notice` and `headers_to_server`.
        notices_named: The same for functions that are around notifications.

    Raises:
        ValueError: Something of it cannot be used; the text says what, and why.
    """
    requests: list[Middleware] = []
    notices: list[NoticeMiddleware] = []
    givers: list[HeaderMiddleware] = []
    for text in named:
        found = _find(text)
        request, notice, headers = (getattr(found, name, None) for name in _METHODS)
        if request is None and notice is None and headers is None:
            request = found
        if request is not None:
            requests.append(_check(request, text))
        if notice is not None:
            notices.append(_check(notice, text))
        if headers is not None:
            givers.append(_check_headers(headers, text))
    notices += [_check(_find(text), text) for text in notices_named]
    return {
        "middleware": tuple(requests),
        "notice_middleware": tuple(notices),
        "header_middleware": tuple(givers),
    }


def _find(text: str) -> Any:
    place, colon, rest = text.partition(".py:") if ".py:" in text else text.partition(":")
    place = f"{place}.py" if colon == ".py:" else place
    if not place or not colon or not rest:
        raise ValueError(f"expected MODULE:NAME, found {text!r}")
    name, arguments = _read_call(rest, text)
    found: Any = _import(place)
    for part in name.split("."):
        if not hasattr(found, part):
            public = getattr(found, "__all__", None) or [one for one in vars(found) if not one.startswith("_")]
            there = ", ".join(sorted(public)) or "nothing"
            raise ValueError(f"{place} has no {part}; it has: {there}")
        found = getattr(found, part)
    if arguments is None:
        if inspect.isclass(found):
            raise ValueError(f"{text} is a class; write {text}(...) to make one")
        return found
    if not callable(found):
        raise ValueError(f"{place}:{name} cannot be called with arguments")
    try:
        return found(*arguments[0], **arguments[1])
    except Exception as error:
        raise ValueError(f"{text}: {type(error).__name__}: {error}") from error


def _read_call(text: str, whole: str) -> tuple[str, tuple[list[Any], dict[str, Any]] | None]:
    """Read a name, and the arguments that follow it; they are literals, and nothing is run to read them."""
    name, bracket, _ = text.partition("(")
    if not bracket:
        return name, None
    try:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        assert all(keyword.arg is not None for keyword in call.keywords)
        positional = [ast.literal_eval(one) for one in call.args]
        return name, (positional, {str(one.arg): ast.literal_eval(one.value) for one in call.keywords})
    except (SyntaxError, ValueError, AssertionError):
        raise ValueError(f"expected literals as arguments, as in NAME(per_minute=60), found {whole!r}") from None


def _import(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _import_file(Path(place))
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # where a user's own module is; last, so that it stands in for nothing installed
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise ValueError(
                f"there is no module {place}, neither installed nor in this directory; a file is given as FILE.py"
            ) from None
        raise ValueError(f"{place} cannot be imported: {error}") from error
    except Exception as error:
        raise ValueError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    name = f"dragoman middleware {path.resolve()}"  # which no import has: a file may be called as a module of Python
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "Python reads files that end with .py"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the like look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    return module


def _check(one: Any, text: str) -> Any:
    """Make sure that something takes a message and what lets it proceed."""
    if not callable(one):
        raise ValueError(f"{text} is not a function, and has none of {', '.join(_METHODS)}")
    called = one if inspect.isroutine(one) else type(one).__call__
    if not inspect.iscoroutinefunction(inspect.unwrap(called)):
        raise ValueError(f"{text} is not an async function")
    try:
        inspect.signature(one).bind(None, None)
    except TypeError:
        raise ValueError(f"{text} does not take two arguments: the message, and what lets it proceed") from None
    return one


def _check_headers(one: Any, text: str) -> Any:
    """Make sure that something can be asked for headers."""
    if not callable(one) or inspect.iscoroutinefunction(inspect.unwrap(one)):
        raise ValueError(f"headers_to_server of {text} is not a function that answers at once (without async)")
    try:
        inspect.signature(one).bind()
    except TypeError:
        raise ValueError(f"headers_to_server of {text} takes arguments; it gets none") from None
    return one
