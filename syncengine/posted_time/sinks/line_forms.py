"""The forms of lines that an `AppendedFile` writes, one for each group: JSON objects, and records of a CSV file."""

from __future__ import annotations

import csv
import errno
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from syncengine.posted_time.sinks.appended_file import AnotherForm, mend_end, write
from syncengine.posted_time.sinks.contract import NO_TEXT, document, undeliverable
from syncengine.posted_time.templates import Json, Variables, fields_of, plain

END = b"\r\n"
"""The end of a CSV record (RFC 4180). No value has it, as line breaks in values are line feeds alone: so the end of the
last whole record is found from the end of the file, whatever quotes and line breaks the values have.
"""

FORMULA = ("=", "+", "-", "@")
"""The first characters, after blanks, of a text that a spreadsheet would run as a formula."""

LONGEST_HEADER = 1 << 16
"""The most bytes that are read for the header of a file that another program may have written."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Lines that are one JSON object each: the `body`, or the whole group, with its tag if `each_tag` has a line."""

    body: Json | None
    each_tag: bool = False

    def render(self, variables: Variables, name: str) -> bytes:
        if self.body is not None:
            whole = self.body.value(variables)
        else:
            whole = {
                **fields_of(variables["group"]),
                **({"tag": variables["tag"]} if self.each_tag else {}),
                "narrative": variables["narrative"],
                "seconds": variables["duration"].seconds,
            }
        return document(whole, f"the line of {name}") + b"\n"

    def shown(self, content: bytes) -> Any:
        return {"json": orjson.loads(content)}

    def mend(self, file: int) -> None:
        """Complete the end of a last line that is whole, or cut off a torn one."""

        def whole(last: bytes) -> bytes:
            try:
                # `12` may be the beginning of `123`: if the number was whole, its note brings it back
                is_torn = type(orjson.loads(last)) in (int, float)
            except orjson.JSONDecodeError:
                is_torn = True
            return b"" if is_torn else last + b"\n"

        mend_end(file, b"\n", whole)


@dataclass(frozen=True, slots=True)
class CsvRecords:
    """Records with these columns below a header, whose values `values` renders."""

    columns: Sequence[str]
    values: Json

    def render(self, variables: Variables, name: str) -> bytes:
        found = self.values.value(variables)
        try:
            return record(found[column] for column in self.columns).encode()
        except UnicodeEncodeError:
            raise undeliverable(NO_TEXT, f"the record of {name}") from None

    def shown(self, content: bytes) -> Any:
        (values,) = csv.reader(io.StringIO(content.decode(), newline=""))
        return {"columns": dict(zip(self.columns, values, strict=True))}

    def mend(self, file: int) -> None:
        """Cut off a torn record, and give an empty file its header. Records that another program wrote stay."""

        def whole(last: bytes) -> bytes:
            # Another program may have ended its records with a line feed alone. What lacks even that counts as torn,
            # since `12` may be the beginning of `123`: if it was whole, its note brings it back.
            kept, size, quotes = 0, 0, 0
            for line in last.splitlines(keepends=True):
                size, quotes = size + len(line), quotes + line.count(b'"')
                kept = size if line.endswith(b"\n") and quotes % 2 == 0 else kept
            return last[:kept]

        mend_end(file, END, whole)
        header = record(self.columns).encode()
        if os.fstat(file).st_size == 0:
            write(file, header)
        elif os.pread(file, len(header), 0) != header:
            self._check(os.pread(file, LONGEST_HEADER, 0))

    def check(self, path: Path) -> None:
        """Raise `AnotherForm` if there is a file with another header. A file that cannot be read is left to `mend`."""
        try:
            with path.open("rb") as file:
                start = file.read(LONGEST_HEADER)
        except OSError:
            return
        if start and not record(self.columns).encode().startswith(start):  # or its header is torn
            self._check(start)

    def _check(self, start: bytes) -> None:
        # Some spreadsheets write the mark of UTF-8 at the beginning of a file.
        text = start.decode(errors="replace").removeprefix("\ufeff")
        found = next(csv.reader(io.StringIO(text, newline="")), [])
        if found != list(self.columns):
            raise AnotherForm(
                errno.EINVAL,
                f"the header of the file is `{','.join(found)[:200]}`, but `columns` says"
                f" `{','.join(self.columns)}`: move the file away, or set `columns` to its header",
            )


def record(values: Iterable[Any]) -> str:
    """Return one CSV record, with its end. Raise `UnicodeEncodeError` for text that UTF-8 cannot hold.

    People write texts, and other people open the table in a spreadsheet: a text that would run there as a formula gets
    an apostrophe in front, which spreadsheets take as the sign of a text. Numbers stay as they are.
    """

    def cell(value: Any) -> Any:
        match value:
            case bool() | list() | dict():
                return orjson.dumps(value).decode()
            case str():
                text = value.replace("\r\n", "\n").replace("\r", "\n")
                return f"'{text}" if text.lstrip().startswith(FORMULA) else text
            case _:
                return value

    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=END.decode()).writerow([cell(plain(value)) for value in values])
    return text.getvalue()
