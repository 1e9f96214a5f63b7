"""What methods and definitions of one revision are called in another, by the steps between them.

Used by the laws, which run over revisions that nobody has seen when they were written.
"""

from __future__ import annotations

from functools import cache

from dragoman_spec import translator


@cache
def method_in(source: str, target: str, method: str) -> str:
    """A method's name in another revision, whether that has it or not."""
    for step in translator(source, target).steps:
        method = step["strict"].methods.get(method, method)
    return method


@cache
def definition_in(source: str, target: str, name: str) -> str:
    """A definition's name in another revision, whether that has it or not."""
    for step in translator(source, target).steps:
        name = step["strict"].renamed.get(name, name)
    return name
