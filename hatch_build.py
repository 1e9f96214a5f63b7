"""Where the project lives, for whoever installs it: said by the machine that builds a release, which knows it."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    """Fills in the URLs below the one that is said; a build that is told of none has none, rather than wrong ones."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `project.urls`."""
        home = os.environ.get("DRAGOMAN_PROJECT_URL", "")
        pages = {
            "Homepage": "",
            "Documentation": "/blob/main/docs/index.md",
            "Changelog": "/blob/main/CHANGELOG.md",
            "Issues": "/issues",
            "Security": "/blob/main/SECURITY.md",
        }
        metadata["urls"] = {name: home + page for name, page in pages.items()} if home else {}
