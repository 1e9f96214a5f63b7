"""Building the bindings as a distribution of their own: the package lies beside this folder, or, in an sdist, in it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = "dragoman_spec"


def find_package(root: str) -> Path:
    """Return where the package is."""
    here = Path(root)
    return next(path for path in (here / PACKAGE, here.parent / "generated" / PACKAGE) if path.is_dir())


class Bindings(BuildHookInterface[Any]):
    """Puts the package into what is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name it, where it would not be found."""
        found = find_package(self.root)
        if found.parent != Path(self.root):
            build_data["force_include"][str(found)] = PACKAGE


class Facts(MetadataHookInterface):
    """Fills in what stands elsewhere: the version in the package, the URLs in the environment of a release."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `project.version` and `project.urls`."""
        text = (find_package(self.root) / "version.py").read_text("utf-8")
        found = re.search(r'^VERSION\b.* = "(.+)"$', text, re.MULTILINE)
        assert found is not None, 'version.py has no line VERSION = "…"'
        metadata["version"] = found[1]
        home = os.environ.get("DRAGOMAN_PROJECT_URL", "")
        pages = {"Homepage": "", "Documentation": "/blob/main/docs/bindings.md", "Issues": "/issues"}
        metadata["urls"] = {name: home + page for name, page in pages.items()} if home else {}
