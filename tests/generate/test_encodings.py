"""The encodings of data files, and the names by which a manifest may give them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from syncengine.manifest.schema import ENCODING_SCHEMA, ENCODINGS, codec_of
from syncengine.manifest.sources.files import text_of
from syncengine.manifest.sources.records import SourceTrouble
from tests.manifest.loading import Files, block, errors, loaded


def encoded(name: str, data: bytes = b"n\nAcme\n") -> Files:
    """A manifest with a tag for each row of data in this encoding."""
    return {"r.csv": data, "manifests/m.yaml": block(f"csv: ../r.csv, encoding: {name}")}


@pytest.mark.parametrize("name", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "rot13", "hex"])
def test_a_codec_that_is_no_encoding_of_files_is_refused(tmp_path: Path, name: str) -> None:
    """Codecs that do not encode text files are refused before the file is read; punycode takes quadratic time."""
    (found,) = errors(tmp_path, encoded(name))
    assert (found.code, found.line, found.column) == ("bad-value", 2, 40)
    assert found.message.startswith(f'`encoding` must be an encoding such as utf-8 or cp1252, not "{name}"')
    assert found.message.endswith("did you mean `utf-8`?") == (name == "utf-7")


@pytest.mark.parametrize("name", ["UTF8", "utf_8", "Windows-1252", "Latin1", "ISO8859-15", "Shift_JIS", "us-ascii"])
def test_an_encoding_has_the_names_that_people_write(tmp_path: Path, name: str) -> None:
    """Any case and separator is accepted, and the schema's pattern accepts the same names."""
    assert [str(key) for key in loaded(tmp_path, encoded(name)).resources] == ["tag/Acme"]
    assert re.search(ENCODING_SCHEMA["pattern"], name)


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path, name: str) -> None:
    """Programs write it in any Unicode encoding, and twice where they join files."""
    made = loaded(tmp_path, encoded(name, "\ufeff\ufeffn\nAcme\n".encode(name))).resources
    assert [str(key) for key in made] == ["tag/Acme"]


@pytest.mark.parametrize("name", ENCODINGS)
def test_any_bytes_are_text_or_trouble(name: str) -> None:
    """In every encoding, malformed bytes raise SourceTrouble and nothing else."""
    codec = codec_of(name)
    assert codec is not None
    for data in (bytes(range(256)), bytes(reversed(range(256))), b"\x1b$B\x80", b"\xff\xfe\x00\xd8", b"n\nAcme\n"):
        try:
            assert text_of(data, "r.csv", codec).isprintable() in (True, False)
        except SourceTrouble as trouble:
            assert str(trouble).startswith("r.csv:")


ROWS = "number,title\n" + "".join(f"A-{n},Acme {n}\n" for n in range(40))


@pytest.mark.parametrize(
    ("written", "declared", "likely"),
    [
        ("utf-16-be", "utf-16-le", "utf-16-be"),
        ("utf-16-le", "utf-16-be", "utf-16-le"),
        ("utf-16-be", "utf-16", "utf-16-be"),
        ("utf-8", "utf-16", "utf-8"),
        ("utf-8", "utf-16-le", "utf-8"),
    ],
)
@pytest.mark.parametrize("rows", [ROWS, "号码,题目\n一,二\n三,二\n"], ids=["letters", "signs"])
def test_text_that_is_not_utf_16_is_no_header_without_rows(
    tmp_path: Path, written: str, declared: str, likely: str, rows: str
) -> None:
    """Most bytes are text in UTF-16, without a line feed: then no row would be left, and all tags be removed."""
    data = rows.encode(written, "replace")
    data += b"\n" * (len(data) % 2)
    (found,) = errors(tmp_path, encoded(f"{declared}, allowEmpty: true", data))
    assert (found.file, found.line) == ("manifests/m.yaml", 2)
    assert found.message.startswith(f"r.csv:1: this is not {declared.upper()} but probably {likely}: ")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("rows", [ROWS, "号码,题目\n一,二\n三,二\n"], ids=["letters", "signs"])
def test_utf_16_is_read(name: str, mark: str, rows: str) -> None:
    """In either order of bytes, with and without a mark of it."""
    assert text_of((mark + rows).encode(name), "r.csv", name) == rows
    if name == "utf-16":
        assert text_of(("\ufeff" + rows).encode("utf-16-be"), "r.csv", name) == rows
