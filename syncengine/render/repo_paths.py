"""Diagnostics → places in a repository, for the formats that show them beside the code; pure."""

from __future__ import annotations

from syncengine.errors import Diagnostic
from syncengine.render.style import Look

PROJECT_FILE = "syncengine.yaml"
"""Where a finding without a place is shown, in formats that drop findings that have none."""


def repository_path(diagnostic: Diagnostic, look: Look) -> str:
    """The file as seen from the repository's root, with forward slashes."""
    return in_repository(diagnostic.file or PROJECT_FILE, look)


def in_repository(file: str, look: Look) -> str:
    """The same of any file that is named as seen from the project's folder."""
    path = file.replace("\\", "/")
    return f"{look.prefix.rstrip('/')}/{path}" if look.prefix else path


def repository_line(diagnostic: Diagnostic) -> int:
    return diagnostic.line or 1
