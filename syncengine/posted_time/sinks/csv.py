"""Records of a CSV file below a header, of which an `AppendedFile` gets one for each group.

A record ends with CR and LF, which no value contains, so that the end of the last whole record is found from the end of
the file, whatever quotes and line breaks the values have.
"""

from __future__ import annotations

import csv
import errno
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncengine.posted_time.csv_table import END, record
from syncengine.posted_time.sinks.appended_file import AnotherForm, mend_end, write
from syncengine.posted_time.templates import Json, Variables
from syncengine.posted_time.wire import NO_TEXT, undeliverable

MARK = "\ufeff"
"""The mark of UTF-8 that some spreadsheets write at the beginning of a file."""

LONGEST_HEADER = 1 << 16
"""The most bytes that are read for the header of a file that another program may have written."""


@dataclass(frozen=True, slots=True)
class CsvRecords:
    """Records with these columns, whose values `values` renders."""

    columns: Sequence[str]
    values: Json

    def render(self, variables: Variables, name: str) -> bytes:
        found = self.values(variables)
        try:
            return record(found[column] for column in self.columns).encode()
        except UnicodeEncodeError:
            raise undeliverable(NO_TEXT, f"the record of {name}") from None

    def shown(self, content: bytes) -> Any:
        (values,) = csv.reader(io.StringIO(content.decode(), newline=""))
        return {"columns": dict(zip(self.columns, values, strict=True))}

    def mend(self, file: int) -> None:
        """Cut off a torn record, and give an empty file its header.

        A record without its end counts as torn, since `12` may be the beginning of `123`: if it is whole, its note
        brings it back. Records that another program ended with a line feed alone stay.
        """
        header = record(self.columns).encode()
        mend_end(file, END, _whole)
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
        text = start.decode(errors="replace").removeprefix(MARK)
        found = next(csv.reader(io.StringIO(text, newline="")), [])
        if found != list(self.columns):
            raise AnotherForm(
                errno.EINVAL,
                f"the header of the file is `{','.join(found)[:200]}`, but `columns` says"
                f" `{','.join(self.columns)}`: move the file away, or set `columns` to its header",
            )


def _whole(last: bytes) -> bytes:
    """Return the records of another program in bytes without our end of a record: up to a line feed beyond quotes."""
    kept, size, quotes = 0, 0, 0
    for line in last.splitlines(keepends=True):
        size, quotes = size + len(line), quotes + line.count(b'"')
        kept = size if line.endswith(b"\n") and quotes % 2 == 0 else kept
    return last[:kept]
