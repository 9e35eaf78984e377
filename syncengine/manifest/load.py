"""Manifest files → their readings, in order: from the cache or the files."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from syncengine.document.diagnostics import Collector
from syncengine.document.digest import sha256_of
from syncengine.document.gc_pause import no_collection
from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.context import LoadContext
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.files import GENERATES, ManifestFile
from syncengine.manifest.read_file import NO_DEFAULTS, read_manifest
from syncengine.manifest.reading import ReadFile, Reading, read_file

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


def read_all(
    files: Sequence[ManifestFile],
    defaults: DefaultValues = NO_DEFAULTS,
    cache: ManifestCache | None = None,
    digests: Sequence[str] | None = None,
) -> Iterator[ReadFile]:
    """Yield a `ReadFile` for each file, and store new ones in the cache. `digests` are those of the files, if known."""
    if cache is None:
        yield from (read_one(file, defaults) for file in files)
        return
    hashed = digests or digests_of(files, cache) or [""] * len(files)
    entries = list(cache.entries(files, hashed).values())
    cached = cache.has(entries)
    new: list[ReadFile] = []
    for file, entry, sha256 in zip(files, entries, hashed, strict=True):
        read = cache.get(entry, sha256) if entry in cached else None
        if read is None:
            read = read_one(file, defaults)
            new.append(read)
        if len(new) >= KEPT_AT_ONCE:
            cache.keep(new)
            new = []
        yield read
    cache.keep(new)


def read_one(file: ManifestFile, defaults: DefaultValues) -> ReadFile:
    """Read one file."""
    findings, context = Collector(file.name), file.context
    data = file.content(findings)
    if data is None:
        return read_file(Reading(file.name, found=tuple(findings.found), whole=False))
    before = _digest(file, data)
    with no_collection():
        read = read_file(_read(file, data, defaults), context.compares_parts if context else 0)
    # Without a digest it is not cached: its templates may have more time in another run, or an input was replaced
    # while it was read, so that its rows may not be those of either digest.
    is_in_time = context is None or not context.allowance.is_used_up
    is_certain = is_in_time and (not _has_inputs(file, data) or _digest(file, data) == before)
    return read._replace(sha256=before) if is_certain else read


def _read(file: ManifestFile, data: bytes, defaults: DefaultValues) -> Reading:
    if not file.is_template:
        return read_manifest(data, file.name, defaults, file.context)
    from syncengine.manifest.read_template import read_template

    return read_template(data, file.name, defaults, file.context or LoadContext())
