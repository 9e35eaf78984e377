"""Loads small projects from disk as the engine does."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.desired import Desired, load
from syncengine.project.load import load_project
from syncengine.resource import Kind, Resource

Files = Mapping[str, str | bytes]
T = TypeVar("T")


def write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def loaded(folder: Path, files: Files) -> Desired:
    write(folder, files)
    return load(load_project(folder=folder, environ={}))


def block(source: str, tag: str = "name: '{{ row.n }}'") -> str:
    """A manifest that makes a tag of each row of a source; the tag is in line 3."""
    return f"generate:\n  - forEach: {{{source}}}\n    tags: [{{{tag}}}]\n"


def loop(data: str = "'../r.csv'", tag: str = "name: '{{ row.n }}'") -> str:
    """A text template that makes a tag of each row of `data(…)`, called in line 2; the tag is in line 3."""
    return f"tags:\n{{% for row in data({data}) %}}\n  - {{{tag}}}\n{{% endfor %}}\n"


def problems(folder: Path, files: Files) -> tuple[Diagnostic, ...]:
    """The diagnostics of the errors, or none if the project is valid."""
    try:
        loaded(folder, files)
    except Problems as refused:
        return refused.found
    return ()


def errors(folder: Path, files: Files) -> list[Diagnostic]:
    return [d for d in problems(folder, files) if d.severity is Severity.ERROR]


def tag(desired: Desired, name: str) -> Resource:
    return next(r for key, r in desired.resources.items() if key.kind is Kind.TAG and key.name == name)


def counted(work: Callable[[], T]) -> tuple[int, T]:
    """The result of some work, after the number of its calls.

    Calls of Python and built-in functions count, and so do steps of generators.
    """
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return calls, result
