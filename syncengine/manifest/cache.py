"""A cache of planning between runs: readings of files by their digest, and the basis of the last plan without changes.

The cache may be lost, stale, damaged or locked at any time: every error counts as a missing entry, and nothing is
concluded that digests do not prove (docs/planning.md 2.8). It is a SQLite file, read with the standard library alone
because every plan opens it.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from syncengine import __version__
from syncengine.content import sha256_of_values
from syncengine.errors import Diagnostic
from syncengine.manifest.context import Input
from syncengine.manifest.files import ManifestFile
from syncengine.manifest.lints import LINTS
from syncengine.manifest.resources import DefaultValues, ReadFile, packed, reading_of
from syncengine.project import git
from syncengine.project.files import make_folder
from syncengine.project.model import Level
from syncengine.project.references import BESIDE

FORMAT = 22
"""The format of the entries, including the texts of diagnostics; part of every digest, like the engine's version."""
# Another process holds it for a moment only; whoever waited longer would read the manifests sooner without it.
BUSY_SECONDS = 0.5
FILE_NAME = "cache.db"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entry (digest TEXT PRIMARY KEY, reading BLOB) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS inputs (file TEXT PRIMARY KEY, digest TEXT, content BLOB) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS basis (name TEXT PRIMARY KEY, digest TEXT, content BLOB) WITHOUT ROWID",
)
_COLUMNS = "SELECT count(*) FROM pragma_table_info('entry')"
_encode = msgspec.msgpack.Encoder().encode

T = TypeVar("T")


def delete_cache(folder: Path) -> None:
    """Delete the cache of a project. The next plan builds a new one."""
    for suffix in BESIDE:
        (folder / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)


class Settled(Struct, frozen=True):
    """The basis of an empty plan: manifests that match the recorded rows of `generation` in every way.

    `files` are the digests of entries by file name, and `desired` is the number of resources. `sources` are the numbers
    of rows by the sources' identities. Without a `generation` the manifests are valid, and nothing is known of rows.
    """

    files: Mapping[str, str]
    desired: int
    diagnostics: tuple[Diagnostic, ...] = ()
    levels: Mapping[str, Level] = {}
    generation: str | None = None
    sources: Mapping[str, int] = {}


_SETTLED = msgspec.msgpack.Decoder(Settled)
_INPUTS = msgspec.msgpack.Decoder(tuple[Input, ...])


class ManifestCache:
    """The cache of one project. Its entries are valid for `defaults` only; every error counts as a missing entry."""

    def __init__(self, folder: Path, defaults: DefaultValues) -> None:
        self._path = folder / FILE_NAME
        self.context = digest_of(__version__, FORMAT, tuple(LINTS), defaults.values)
        self._connection: sqlite3.Connection | None = None
        with suppress(sqlite3.Error, OSError):
            self._connection = self._connected()

    def digest(self, file: str, sha256: str) -> str:
        """Return the digest under which a file's entry is stored."""
        return digest_of(self.context, file, sha256)

    def entries(self, files: Iterable[ManifestFile], digests: Iterable[str]) -> dict[str, str]:
        """Return the digest of each file's entry by file name. `digests` are the SHA-256 digests of `files`."""
        return {file.name: self.digest(file.name, sha256) for file, sha256 in zip(files, digests, strict=True)}

    def find_basis(self, entries: Mapping[str, str], levels: Mapping[str, Level]) -> Settled | None:
        """Return the basis of an empty plan for exactly these entries and lint levels, or `None`."""
        rows = self._rows("SELECT content FROM basis WHERE digest = ?", digest_of(entries))
        candidates = (_decoded(_SETTLED.decode, content) for (content,) in rows)
        return next((basis for basis in candidates if basis is not None and basis.levels == levels), None)

    def digests(self) -> frozenset[str]:
        """Return the digests of all entries."""
        return frozenset(digest for (digest,) in self._rows("SELECT digest FROM entry"))

    def get(self, digest: str, sha256: str = "") -> ReadFile | None:
        """Return the file that is stored under a digest, or `None`."""
        row = next(iter(self._rows("SELECT reading FROM entry WHERE digest = ?", digest)), (None,))
        reading = _decoded(reading_of, row[0])
        return None if reading is None else ReadFile(reading, sha256)

    def inputs(self, file: str, sha256: str) -> tuple[Input, ...] | None:
        """Return the inputs that the last reading of these bytes of a file recorded, or `None`."""
        rows = self._rows("SELECT content FROM inputs WHERE file = ?", self.digest(file, sha256))
        return _decoded(_INPUTS.decode, next(iter(rows), (None,))[0])

    def keep(self, reads: Iterable[ReadFile]) -> None:
        """Store files that were read, each under its digest."""
        found = [(self.digest(read.reading.file, read.sha256), read) for read in reads if read.sha256]
        rows = [(digest, seal(packed(read.reading))) for digest, read in found]
        inputs = [
            (self.digest(read.reading.file, read.content), digest, seal(_encode(read.inputs)))
            for digest, read in found
            if read.inputs is not None
        ]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?)", rows)
            connection.executemany("INSERT OR REPLACE INTO inputs VALUES (?, ?, ?)", inputs)

        if rows:
            self._write(write)

    def settled(self, name: str) -> Settled | None:
        """Return the basis that is stored under `name`, or `None`."""
        rows = self._rows("SELECT content FROM basis WHERE name = ?", name)
        return _decoded(_SETTLED.decode, next(iter(rows), (None,))[0])

    def remember(self, name: str, basis: Settled) -> None:
        """Store `basis` under `name`, and delete entries that no basis refers to."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            row = (name, digest_of(basis.files), seal(_encode(basis)))
            connection.execute("INSERT OR REPLACE INTO basis VALUES (?, ?, ?)", row)
            used = set[str]()
            for each, content in connection.execute("SELECT name, content FROM basis").fetchall():
                if (known := _decoded(_SETTLED.decode, content)) is None:
                    connection.execute("DELETE FROM basis WHERE name = ?", (each,))
                else:
                    used.update(known.files.values())
            digests = {digest for (digest,) in connection.execute("SELECT digest FROM entry")}
            connection.executemany("DELETE FROM entry WHERE digest = ?", [(digest,) for digest in digests - used])
            connection.execute("DELETE FROM inputs WHERE digest NOT IN (SELECT digest FROM entry)")

        self._write(write)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> ManifestCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> sqlite3.Connection:
        """Open the cache, and delete one that is damaged, not private, or another user's.

        Raise `OSError` for one that Git may have brought: with a cache in a pull request, its author could claim that
        its manifests have no problems.
        """
        make_folder(self._path.parent)
        real = self._path.resolve()
        if real.exists() and git.may_keep(real.parent, *(f"{real.name}{suffix}" for suffix in BESIDE)):
            raise OSError(f"{self._path} is under Git")
        known = self._path.stat() if self._path.is_file() else None
        if known is None or known.st_mode & 0o077 or known.st_uid != os.geteuid():
            delete_cache(self._path.parent)
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous = OFF")  # files are read again after a power cut
            connection.execute("PRAGMA journal_mode = MEMORY")
            if connection.execute(_COLUMNS).fetchone()[0] not in (0, 2):
                connection.execute("DROP TABLE entry")  # it is from an engine with other columns
            for statement in _SCHEMA:
                connection.execute(statement)
        except sqlite3.Error as error:
            connection.close()
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                self._path.unlink(missing_ok=True)
            raise
        return connection

    def _rows(self, query: str, *values: str) -> list[Any]:
        with suppress(sqlite3.Error):
            return [] if self._connection is None else self._connection.execute(query, values).fetchall()
        return []

    def _write(self, write: Callable[[sqlite3.Connection], None]) -> None:
        """Call `write`, which begins a transaction, and commit, or give up what another run or the disk prevents."""
        if self._connection is not None:
            with suppress(sqlite3.Error), self._connection:
                write(self._connection)


def _decoded(decode: Callable[[bytes], T], content: object) -> T | None:
    """Return what was stored, or `None` when it is absent, damaged or of another version."""
    data = unseal(content)
    with suppress(msgspec.DecodeError):
        return None if data is None else decode(data)
    return None


def seal(data: bytes) -> bytes:
    """Return the data after a checksum. SQLite has none, and the cache is written without waiting for the disk."""
    return zlib.crc32(data).to_bytes(4) + data


def unseal(content: object) -> bytes | None:
    """Return the data that `seal` was given, or `None` when `content` is damaged or was never sealed."""
    if not isinstance(content, bytes) or content[:4] != zlib.crc32(content[4:]).to_bytes(4):
        return None
    return content[4:]


def digest_of(*parts: object) -> str:
    """Return a short digest of plain values."""
    return sha256_of_values(parts)[:40]
