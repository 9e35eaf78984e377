"""The files of outputs, such as `--report` and `--out`: refuse unsuitable ones, and write the reports."""

from __future__ import annotations

import codecs
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from syncengine.cli.options import Globals
from syncengine.cli.output import COMMANDS, Output
from syncengine.cli.streams import safe
from syncengine.errors import SyncengineError
from syncengine.project import folder as own_folder
from syncengine.project.atomic_write import as_written, is_stream, refuse_links, write_whole
from syncengine.project.environments import environment_names
from syncengine.project.model import MANIFESTS, POLICIES, Project
from syncengine.project.references import sqlite_file
from syncengine.project.secret_places import sqlite_files

INPUTS = frozenset({".yaml", ".yml", ".j2", ".csv"})
"""The suffixes of files that people write. No output has one of them."""

DATABASE = b"SQLite format 3\0"
"""The first bytes of a database of SQLite, such as a state."""

OURS, JSON_LINES = b"syncengine.", frozenset({".json", ".jsonl", ".ndjson"})
"""The start of the `format` of our own JSON, and the suffixes of JSON."""

OUR_START = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + re.escape(OURS))
"""The start of a document of ours, which need not be parsed: a saved plan may be larger than the memory."""

HEAD = 200
"""The number of bytes at the start of a file by which most files are recognized."""

REPORT_MEMBERS = (frozenset({"version", "runs"}), frozenset({"fingerprint"}))
"""The members of reports in other formats of JSON (SARIF, GitLab's code quality), which outputs may replace."""


class OutputFiles:
    """The files that the outputs of one command may replace.

    `kept` are the files that the command itself reads, such as a reviewed plan.
    """

    def __init__(self, options: Globals, kept: Iterable[str] = ()) -> None:
        self._options = options
        self._folder = options.folder
        self._kept = {self.place(file) for file in kept}

    def reports(self, values: Sequence[str], formats: Sequence[str]) -> list[tuple[str, str]]:
        """Return the `FORMAT=FILE` options as pairs, with relative files. Raise a usage error for other text."""
        pairs = []
        for value in values:
            format, equals, file = value.partition("=")
            if not equals or not file or format not in formats:
                raise click.UsageError(
                    f"--report {value!r}: write FORMAT=FILE, with one of the formats {', '.join(formats)}"
                )
            if not (parent := (self._folder / file).parent).is_dir():
                raise click.UsageError(f"--report {value!r}: there is no folder {parent}")
            self.refuse_input(file, f"--report {value!r}")
            pairs.append((format, file))
        for shared in self.named_twice(file for _, file in pairs):
            raise click.UsageError(f"--report: two reports are written to {shared}")
        return pairs

    def named_twice(self, files: Iterable[str]) -> list[Path]:
        """Return the places that several of `files` name. Streams and devices may be named twice."""
        places = Counter(map(self.place, (file for file in files if file != "-")))
        return [place for place, count in places.items() if count > 1 and (place.is_file() or not place.exists())]

    def place(self, file: str) -> Path:
        """Return the place of a file without links."""
        return _place(self._folder / file)

    def refuse_input(self, file: str, option: str) -> None:
        """Raise a usage error when `file`, the output of `option`, is or is named like a file that syncengine reads."""
        path = as_written(self._folder / file)
        if file == "-" or is_stream(path):
            return
        if trouble := self._trouble_with(path):
            raise click.UsageError(f"{option}: {trouble}: choose another name")

    def refuse_links(self, reports: Iterable[str]) -> None:
        """Raise `SyncengineError` when a report is a link, which would be found only once the work is done."""
        for file in reports:
            path = as_written(self._folder / file)
            try:
                if file != "-" and not is_stream(path):
                    refuse_links(path)
            except OSError as error:
                message = f"the report {file} cannot be written: {error.strerror}; nothing was applied"
                raise SyncengineError(message, code="report-file") from None

    def use_of(self, path: Path) -> str | None:
        """Return the use of a file that this command or its project reads, or `None` for any other file."""
        place = _place(path)
        if place in self._kept:
            return "read by this command and would be overwritten"
        if ".git" in place.parts:
            return "in the folder of Git"
        if place in self._files:
            return "read by this project and would be overwritten"
        is_manifest = path.suffix.lower() == ".json" and not self._folders.isdisjoint(place.parents)
        return "in a folder whose JSON files this project reads" if is_manifest else None

    def _trouble_with(self, path: Path) -> str | None:
        """Return why no output is written to a file, or `None`."""
        with suppress(OSError):  # whoever writes the file reports a link
            refuse_links(path)
            if path.suffix.lower() in INPUTS:
                return f"no output is written to a {path.suffix} file, since people write them"
            if is_input := self.use_of(path) or _content_of(path):
                return f"this file is {is_input}"
        return None

    @cached_property
    def _files(self) -> set[Path]:
        return {_place(file) for file in self._inputs()}

    @cached_property
    def _folders(self) -> set[Path]:
        return {file for file in self._files if not file.is_file()}

    def _inputs(self) -> Iterator[Path]:
        """Yield the files and folders that the project reads, in any of its environments."""
        yield from (self._folder / name for name in (self._options.config, *self._options.variable_files) if name)
        projects = list(self._projects())
        if not projects:  # there is none, or it is unreadable
            yield from (self._folder / MANIFESTS, self._folder / POLICIES)
        for project in projects:
            yield from (*project.manifests, *project.policy_paths, *project.secret_files())
            if project.policies is None:
                yield project.files / POLICIES
            if project.posted_time and project.posted_time.narrative and project.posted_time.narrative.template:
                yield project.root / project.posted_time.narrative.template.text
            own = project.root / own_folder.NAME
            yield own / ".gitignore"
            for database in (own / "state.db", project.sandbox_data, *_state_file(project)):
                yield from sqlite_files(database)

    def _projects(self) -> Iterator[Project]:
        """Yield the project in each of its environments, as far as its project file is readable."""
        projects = list(filter(None, map(self._project, dict.fromkeys((self._options.environment, None)))))
        yield from projects
        names = environment_names(projects[0].config) if projects and projects[0].config else ()
        yield from filter(None, map(self._project, names))

    def _project(self, environment: str | None) -> Project | None:
        with suppress(SyncengineError, OSError):
            return replace(self._options, environment=environment).project()
        return None


def _state_file(project: Project) -> Iterator[Path]:
    with suppress(SyncengineError):  # an environment variable may not be set
        if file := sqlite_file(project.state):
            yield file


def _place(path: Path) -> Path:
    return Path(os.path.realpath(path))  # `resolve` fails at a link that leads to itself


def _content_of(path: Path) -> str | None:
    """Return the kind of content that no output replaces, or `None` for any other file."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        start = file.read(HEAD)
    if start.startswith(DATABASE):
        return "a database and would be overwritten"
    if OUR_START.match(start):
        return None
    is_foreign = path.suffix.lower() in JSON_LINES and _is_foreign(_json_in(path))
    return "JSON that syncengine did not write and would be overwritten" if is_foreign else None


def _is_foreign(content: Any) -> bool:
    """Return whether JSON is neither empty nor a document or report that syncengine may have written."""
    first = content[0] if isinstance(content, Sequence) and content else content
    if not isinstance(first, Mapping):
        return bool(content)
    ours = bytes(first.get("format", b"")).startswith(b'"' + OURS)
    return bool(content) and not ours and not any(members <= first.keys() for members in REPORT_MEMBERS)


def _json_in(path: Path) -> Any:
    """Return the object or list of JSON in a file or in its first line, unparsed below; empty if there is none."""
    from msgspec import MsgspecError, Raw, json

    whole = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    for text in (whole, whole.partition(b"\n")[0]):
        for kind in (dict[str, Raw], list[dict[str, Raw]], list[Raw]):
            with suppress(MsgspecError, UnicodeDecodeError, RecursionError):
                return json.Decoder[Any](kind).decode(text)
    return ()


def takes_stdout(targets: Sequence[tuple[str, str]]) -> bool:
    """Return whether a report is written to stdout, which is then reserved for reports."""
    return any(file == "-" for _, file in targets)


def write_reports(output: Output, reports: Sequence[tuple[str, str, str]]) -> None:
    """Write `reports` (format, text, file; `-` is stdout). Raise the first error after writing all other reports."""
    trouble: SyncengineError | None = None
    for format, text, file in reports:
        if file == "-":
            continue
        try:
            content = text if format in COMMANDS else safe(text)
            write_whole(output.options.folder / file, [content.encode(errors="backslashreplace")])
        except OSError as error:
            words = f"the report {file} cannot be written: {error.strerror}"
            trouble = trouble or SyncengineError(words, code="report-file")
    for format, text, file in reports:
        if file == "-":
            output.data(text, format)
    if trouble is not None:
        raise trouble
