"""The files of outputs, such as `--report` and `--out`: refuse unsuitable ones, and write the reports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from syncengine.cli.output import COMMANDS, Output
from syncengine.cli.streams import safe
from syncengine.errors import SyncengineError
from syncengine.project.atomic_write import refuse_links, write_whole

INPUTS = frozenset({".yaml", ".yml", ".j2", ".csv"})
"""The suffixes of files that people write. No output has one of them."""

DATABASE = b"SQLite format 3\0"
"""The first bytes of a database of SQLite, such as a state."""


def report_targets(values: Sequence[str], formats: Sequence[str], folder: Path) -> list[tuple[str, str]]:
    """Return the `FORMAT=FILE` options as pairs, with FILE relative to `folder`. Raise a usage error for other text."""
    pairs = []
    for value in values:
        format, equals, file = value.partition("=")
        if not equals or not file or format not in formats:
            raise click.UsageError(
                f"--report {value!r}: write FORMAT=FILE, with one of the formats {', '.join(formats)}"
            )
        if not (parent := (folder / file).parent).is_dir():
            raise click.UsageError(f"--report {value!r}: there is no folder {parent}")
        refuse_input(folder, file, f"--report {value!r}")
        pairs.append((format, file))
    if shared := _shared(folder, [file for _, file in pairs]):
        raise click.UsageError(f"--report: two reports are written to {shared}")
    return pairs


def refuse_shared(folder: Path, file: str, reports: Sequence[str], option: str) -> None:
    """Raise a usage error when a report is written to `file`, the plan of `option`."""
    if any(_shared(folder, [file, report]) for report in reports):
        raise click.UsageError(f"{option}: a report is written to the same file")


def _shared(folder: Path, files: Sequence[str]) -> str | None:
    """Return a file that is named twice. Streams and devices may be."""
    places = [os.path.realpath(folder / file) for file in files if file != "-"]
    twice = (place for number, place in enumerate(places) if place in places[:number])
    return next((place for place in twice if Path(place).is_file() or not Path(place).exists()), None)


def refuse_input(folder: Path, file: str, option: str) -> None:
    """Raise a usage error when `file`, the output of `option`, is or is named like a file that syncengine reads."""
    path = Path(os.path.abspath(folder / file))  # noqa: PTH100 - as it will be written, without following links
    if path.exists() and not path.is_file():
        return
    with suppress(OSError):  # whoever writes the file reports a link
        refuse_links(path)
        if path.suffix.lower() in INPUTS:
            message = f"no output is written to a {path.suffix} file, since people write them: choose another name"
            raise click.UsageError(f"{option}: {message}")
        if is_input := _input_in(path):
            raise click.UsageError(f"{option}: this file is {is_input} and would be overwritten: choose another name")


def _input_in(path: Path) -> str | None:
    """Return the kind of input that an existing file is, or `None` for any other file."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        start = file.read(len(DATABASE))
    if start == DATABASE:
        return "a database"
    return "a manifest" if path.suffix.lower() == ".json" and _is_manifest(path) else None


def _is_manifest(path: Path) -> bool:
    from msgspec import MsgspecError, Raw, json

    from syncengine.manifest.schema import MANIFEST_SECTIONS
    from syncengine.plan.saved import is_saved_plan

    if is_saved_plan(path):  # as any document of ours
        return False
    try:
        return not {*MANIFEST_SECTIONS}.isdisjoint(json.decode(path.read_bytes(), type=dict[str, Raw]))
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return False


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
