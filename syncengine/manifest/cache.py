"""A cache of planning between runs: readings of files by their digest, and the basis of the last plan without changes.

The cache may be lost, stale, damaged or locked at any time: every error counts as a missing entry, and nothing is
concluded that digests do not prove (docs/planning.md 2.8). It is a SQLite file, read with the standard library alone
because every plan opens it.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TypeVar

import msgspec
from msgspec import Struct

from syncengine import __version__
from syncengine.content import sha256_of_values
from syncengine.errors import Diagnostic
from syncengine.manifest.context import Input
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.files import ManifestFile
from syncengine.manifest.reading import ReadFile, packed, reading_of
from syncengine.project import git
from syncengine.project.files import make_folder
from syncengine.project.model import Level
from syncengine.project.references import BESIDE

FORMAT = 15
"""The format of the entries, including the texts of diagnostics; part of every digest, like the engine's version."""
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
        self.context = digest_of(__version__, FORMAT, defaults.values)
        self._writer: Thread | None = None
        self._access = Lock()
        """Held for each access: a wait for the writer can be interrupted, and SQLite crashes if it is closed in use."""
        self._connection = self._quietly(self._connected)

    def digest(self, file: str, sha256: str) -> str:
        """Return the digest under which a file's entry is stored."""
        return digest_of(self.context, file, sha256)

    def entries(self, files: Iterable[ManifestFile], digests: Iterable[str]) -> dict[str, str]:
        """Return the digest of each file's entry by file name. `digests` are the SHA-256 digests of `files`."""
        return {file.name: self.digest(file.name, sha256) for file, sha256 in zip(files, digests, strict=True)}

    def find_basis(self, entries: Mapping[str, str], levels: Mapping[str, Level]) -> Settled | None:
        """Return the basis of an empty plan for exactly these entries and lint levels, or `None`."""
        query = "SELECT content FROM basis WHERE digest = ?"
        rows = self._quietly(lambda c: c.execute(query, (digest_of(entries),)).fetchall()) or ()
        candidates = (_settled(*row) for row in rows)
        return next((basis for basis in candidates if basis is not None and basis.levels == levels), None)

    def has(self, digests: Iterable[str]) -> set[str]:
        """Return the members of `digests` that have an entry."""
        return set(self.digests().intersection(digests))

    def digests(self) -> frozenset[str]:
        """Return the digests of all entries."""
        rows = self._quietly(lambda c: c.execute("SELECT digest FROM entry").fetchall()) or ()
        return frozenset(digest for (digest,) in rows)

    def get(self, digest: str, sha256: str = "") -> ReadFile | None:
        """Return the file that is stored under a digest, or `None`."""
        query = "SELECT reading FROM entry WHERE digest = ?"
        row = self._quietly(lambda c: c.execute(query, (digest,)).fetchone())
        data = None if row is None else unseal(row[0])
        with suppress(msgspec.DecodeError):
            return None if data is None else ReadFile(reading_of(data), sha256)
        return None

    def inputs(self, file: str, sha256: str) -> tuple[Input, ...] | None:
        """Return the inputs that the last reading of these bytes of a file recorded, or `None`."""
        query = "SELECT content FROM inputs WHERE file = ?"
        row = self._quietly(lambda c: c.execute(query, (self.digest(file, sha256),)).fetchone())
        data = None if row is None else unseal(row[0])
        with suppress(msgspec.DecodeError):
            return None if data is None else _INPUTS.decode(data)
        return None

    def keep(self, reads: Iterable[ReadFile]) -> None:
        """Store files that were read, each under its digest.

        A thread writes them while the caller continues. The next access to the cache waits for it.
        """
        if pairs := [(self.digest(read.reading.file, read.sha256), read) for read in reads if read.sha256]:
            self._wait()
            writer = Thread(target=self._keep, args=(pairs,), name="cache")
            try:
                writer.start()
            except RuntimeError:  # there is no room for another thread
                self._keep(pairs)
            else:
                self._writer = writer

    def _keep(self, pairs: Sequence[tuple[str, ReadFile]]) -> None:
        with suppress(MemoryError):
            self._write(pairs)

    def _write(self, pairs: Sequence[tuple[str, ReadFile]]) -> None:
        rows = [(digest, seal(packed(read.reading))) for digest, read in pairs]
        inputs = [
            (self.digest(read.reading.file, read.content), digest, seal(_encode(read.inputs)))
            for digest, read in pairs
            if read.inputs is not None
        ]
        self._tried(lambda c: c.execute("BEGIN"))
        self._tried(lambda c: c.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?)", rows))
        self._tried(lambda c: c.executemany("INSERT OR REPLACE INTO inputs VALUES (?, ?, ?)", inputs))
        self._tried(lambda c: c.execute("COMMIT"))

    def settled(self, name: str) -> Settled | None:
        """Return the basis that is stored under `name`, or `None`."""
        row = self._quietly(lambda c: c.execute("SELECT content FROM basis WHERE name = ?", (name,)).fetchone())
        return _settled(*row) if row else None

    def remember(self, name: str, basis: Settled) -> None:
        """Store `basis` under `name`, and delete entries that no basis refers to."""
        row = (name, digest_of(basis.files), seal(_encode(basis)))
        self._quietly(lambda c: c.execute("INSERT OR REPLACE INTO basis VALUES (?, ?, ?)", row))
        self._quietly(self._drop_unused)

    def close(self) -> None:
        self._quietly(lambda c: c.close())

    def __enter__(self) -> ManifestCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop_unused(self, connection: sqlite3.Connection) -> None:
        bases = {name: _settled(content) for name, content in connection.execute("SELECT name, content FROM basis")}
        unreadable = [(name,) for name, basis in bases.items() if basis is None]
        connection.executemany("DELETE FROM basis WHERE name = ?", unreadable)
        referenced_digests = {
            digest for basis in bases.values() if basis is not None for digest in basis.files.values()
        }
        digests = {row[0] for row in connection.execute("SELECT digest FROM entry")}
        connection.executemany(
            "DELETE FROM entry WHERE digest = ?", [(digest,) for digest in digests - referenced_digests]
        )
        connection.execute("DELETE FROM inputs WHERE digest NOT IN (SELECT digest FROM entry)")

    def _connected(self, _: object) -> sqlite3.Connection:
        make_folder(self._path.parent)
        self._trust()
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

    def _trust(self) -> None:
        """Delete a cache that is not private. Raise `OSError` when it may come with the repository.

        With a cache in a pull request, its author could claim that its manifests have no problems.
        """
        beside = [self._path.with_name(f"{self._path.name}{suffix}") for suffix in BESIDE]
        real = self._path.resolve()
        if real.exists() and git.may_keep(real.parent, *(f"{real.name}{suffix}" for suffix in BESIDE)):
            raise OSError(f"{self._path} is under Git")
        if not self._path.is_file() or self._path.stat().st_mode & 0o077:
            for path in beside:
                path.unlink(missing_ok=True)

    def _wait(self) -> None:
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def _quietly(self, what: Callable[..., T]) -> T | None:
        self._wait()
        return self._tried(what)

    def _tried(self, what: Callable[..., T]) -> T | None:
        connection = getattr(self, "_connection", None)
        if connection is None and what != self._connected:
            return None
        with suppress(sqlite3.Error, OSError, msgspec.DecodeError), self._access:
            return what(connection)
        return None


def _settled(content: object) -> Settled | None:
    """Return the basis in `content`, or `None` when it is damaged or of another version."""
    data = unseal(content)
    with suppress(msgspec.DecodeError):
        return None if data is None else _SETTLED.decode(data)
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
