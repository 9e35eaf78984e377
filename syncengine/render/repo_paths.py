"""Diagnostics and resources → places in the repository, for formats that show them beside the code; pure."""

from __future__ import annotations

from syncengine.errors import Diagnostic
from syncengine.render.rows import Member
from syncengine.render.style import Look


def repository_path(diagnostic: Diagnostic, look: Look) -> str:
    """Return the file of a diagnostic relative to the repository's root, with forward slashes.

    A finding without a place names the project file, because formats of hosts would otherwise drop it.
    """
    return in_repository(diagnostic.file or look.project_file, look)


def in_repository(file: str, look: Look) -> str:
    """Return a file of the project's folder relative to the repository's root, with forward slashes."""
    path = file.replace("\\", "/")
    return f"{look.prefix.rstrip('/')}/{path}" if look.prefix else path


def link_to(member: Member, look: Look) -> str:
    """Return the URL of a resource's line at the repository's host; empty when there is none."""
    links = look.links.of_removed() if member.is_gone else look.links
    source = member.source
    return links.line(in_repository(source.file, look), source.line) if source else ""


def repository_line(diagnostic: Diagnostic) -> int:
    return diagnostic.line or 1
