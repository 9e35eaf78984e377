"""Manifest files → their readings, in order: from the cache or the files, in several processes if they are large."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import msgspec

from syncengine.document.diagnostics import Collector
from syncengine.document.digest import sha256_of
from syncengine.document.gc_pause import no_collection
from syncengine.manifest.cache import ManifestCache, has_cache
from syncengine.manifest.context import LoadContext
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.files import GENERATES, ManifestFile
from syncengine.manifest.read_file import NO_DEFAULTS, read_manifest
from syncengine.manifest.reading import ReadFile, Reading, read_file, reading_of

MUCH = 1_000_000
"""The total size of files, in bytes, from which several processes are worth starting."""
KEPT_AT_ONCE = 8
"""The number of readings that wait in memory to be stored in the cache together."""


def digests_of(files: Sequence[ManifestFile], cache: ManifestCache) -> list[str] | None:
    """Return the digest of each file with all its inputs, empty if unreadable, or `None` when the cache is empty.

    With an empty cache, no digest is needed to find entries, so each file and its sources are read only once. A file
    with an entry for its bytes alone has no other inputs, and is not searched for `generate`.
    """
    digests = cache.digests()
    return [_known_digest(file, cache, digests) or _whole_digest(file) for file in files] if digests else None


def _known_digest(file: ManifestFile, cache: ManifestCache, digests: Container[str]) -> str:
    sha256 = file.sha256()
    if file.context is not None:
        file.context.note(file.path, sha256)
    return sha256 if cache.digest(file.name, sha256) in digests else ""


def _whole_digest(file: ManifestFile) -> str:
    data = file.content(Collector(file.name))
    return "" if data is None else _digest(file, data)


def _has_inputs(file: ManifestFile, data: bytes) -> bool:
    """Return whether a file's resources may depend on other files, databases or services."""
    return file.is_template or GENERATES in data


def _digest(file: ManifestFile, data: bytes) -> str:
    sha256 = sha256_of(data)
    if file.context is None:
        return sha256
    file.context.note(file.path, sha256)
    if not _has_inputs(file, data):
        return sha256
    from syncengine.manifest.dependencies import (
        digest_with_inputs,  # templates and sources cost more than most manifests
    )

    return digest_with_inputs(file, data, file.context)


@contextmanager
def reading_ahead(
    files: Sequence[ManifestFile], defaults: DefaultValues, folder: Path
) -> Iterator[Iterator[ReadFile] | None]:
    """Read files in other processes from now on if there is much to read and no cache in `folder`. Yield the results.

    Yield `None` if nothing is read. Reading stops at the end of the context.
    """
    processes = 1 if has_cache(folder) else _processes(files)
    if processes < 2:
        yield None
        return
    with _in_processes(files, [None] * len(files), defaults, processes) as reads:
        yield reads


def read_all(
    files: Sequence[ManifestFile],
    defaults: DefaultValues = NO_DEFAULTS,
    cache: ManifestCache | None = None,
    digests: Sequence[str] | None = None,
    ahead: Iterator[ReadFile] | None = None,
) -> Iterator[ReadFile]:
    """Yield a `ReadFile` for each file, and store new ones in the cache.

    `digests` are those of the files, if known. `ahead` are the results of `reading_ahead`, of use if nothing is cached.
    """
    if cache is None:
        yield from ahead or _fresh(files, [None] * len(files), defaults)
        return
    hashed = digests or digests_of(files, cache) or [""] * len(files)
    entries = list(cache.entries(files, hashed).values())
    cached = cache.has(entries)
    missing = [file for file, entry in zip(files, entries, strict=True) if entry not in cached]
    former = [cache.latest(file.name) if file.context else None for file in missing]
    fresh = ahead if ahead and len(missing) == len(files) else _fresh(missing, former, defaults)
    new: list[ReadFile] = []
    for file, entry, sha256 in zip(files, entries, hashed, strict=True):
        read = cache.get(entry, sha256) if entry in cached else None
        if read is None:
            read = next(fresh) if entry not in cached else read_one(file, defaults)
            new.append(read)
        if len(new) >= KEPT_AT_ONCE:
            cache.keep(new)
            new = []
        yield read
    cache.keep(new)


def _fresh(
    files: Sequence[ManifestFile], former: Sequence[bytes | None], defaults: DefaultValues
) -> Iterator[ReadFile]:
    processes = _processes(files)
    if processes < 2:
        yield from (read_one(file, defaults, packed) for file, packed in zip(files, former, strict=True))
        return
    with _in_processes(files, former, defaults, processes) as reads:
        yield from reads


def read_one(file: ManifestFile, defaults: DefaultValues, former: bytes | None = None) -> ReadFile:
    """Read one file. `former` is its last reading in MessagePack, whose rows can be reused."""
    findings, context = Collector(file.name), file.context
    data = file.content(findings)
    if data is None:
        return read_file(Reading(file.name, found=tuple(findings.found), whole=False))
    before = _digest(file, data)
    with no_collection():
        read = read_file(_read(file, data, defaults, former), context.compares_parts if context else 0)
    # Without a digest it is not cached: its templates may have more time in another run, or an input was replaced
    # while it was read, so that its rows may not be those of either digest.
    is_in_time = context is None or not context.allowance.is_used_up
    is_certain = is_in_time and (not _has_inputs(file, data) or _digest(file, data) == before)
    return read._replace(sha256=before) if is_certain else read


def _read(file: ManifestFile, data: bytes, defaults: DefaultValues, former: bytes | None) -> Reading:
    if not file.is_template:
        return read_manifest(data, file.name, defaults, file.context, _former(former))
    from syncengine.manifest.read_template import read_template

    return read_template(data, file.name, defaults, file.context or LoadContext())


def _former(packed: bytes | None) -> Reading | None:
    """Return the former reading, or `None` when there is none or another version wrote it."""
    with suppress(msgspec.DecodeError):
        return None if packed is None else reading_of(packed)
    return None


def _processes(files: Sequence[ManifestFile]) -> int:
    """Return the number of processes that are worth starting: 1 where processes cannot be forked."""
    if sum(file.size() for file in files) < MUCH:
        return 1
    import multiprocessing

    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, len(files))


@contextmanager
def _in_processes(
    files: Sequence[ManifestFile], former: Sequence[bytes | None], defaults: DefaultValues, processes: int
) -> Iterator[Iterator[ReadFile]]:
    """Start to read files in processes. Yield an iterator of the results."""
    from syncengine.manifest.reading_processes import in_processes

    # Marks of nodes belong to the parser of this process.
    own = DefaultValues(defaults.values, {}, defaults.file)
    with in_processes(lambda number: _read_apart(files[number], own, former[number]), len(files), processes) as reads:
        yield map(_brought, reads, files, repeat(defaults), former)


def _read_apart(
    file: ManifestFile, defaults: DefaultValues, former: bytes | None
) -> tuple[ReadFile | None, Mapping[str, str]]:
    """Read a file in a process of its own. Return it with all files that were read.

    Return no file if it needs a database or a service: the parent queries these, once for all files.
    """
    if file.context is None:
        return read_one(file, defaults, former), {}
    context = replace(file.context, unasked=[], read={})
    read = read_one(replace(file, context=context), defaults, former)
    return None if context.unasked else read, context.read


def _brought(
    answer: tuple[ReadFile | None, Mapping[str, str]], file: ManifestFile, defaults: DefaultValues, former: bytes | None
) -> ReadFile:
    read, noted = answer
    if file.context is not None:
        for path, sha256 in noted.items():
            file.context.note(Path(path), sha256)
    return read or read_one(file, defaults, former)
