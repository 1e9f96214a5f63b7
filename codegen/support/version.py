"""The version of these bindings, which have one of their own: a new revision is a minor version.

`dragoman` contains the same package as `dragoman-spec`. It says which version it has been tried with, and refuses
another that was installed over it.
"""

VERSION = "0.1.0"
"""Semantic: what the page on the bindings promises holds within a major version."""
