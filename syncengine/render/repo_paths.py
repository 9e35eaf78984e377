"""Diagnostics and resources → places in a repository, for the formats that show them beside the code; pure."""

from __future__ import annotations

from syncengine.errors import Diagnostic
from syncengine.render.rows import Member
from syncengine.render.style import Look

PROJECT_FILE = "syncengine.yaml"
"""The place of findings without one, in formats that drop such findings."""


def repository_path(diagnostic: Diagnostic, look: Look) -> str:
    """The file as seen from the repository's root, with forward slashes."""
    return in_repository(diagnostic.file or PROJECT_FILE, look)


def in_repository(file: str, look: Look) -> str:
    """The same for any file that is named relative to the project's folder."""
    path = file.replace("\\", "/")
    return f"{look.prefix.rstrip('/')}/{path}" if look.prefix else path


def link_to(member: Member, look: Look) -> str:
    """The address of a resource's line at the repository's host; empty where there is none."""
    links = look.links.of_removed() if member.is_gone else look.links
    source = member.source
    return links.line(in_repository(source.file, look), source.line) if source else ""


def repository_line(diagnostic: Diagnostic) -> int:
    return diagnostic.line or 1
