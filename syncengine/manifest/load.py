"""Manifest files → their readings, in order: from the cache or the files."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from syncengine.content import sha256_of, sha256_of_values
from syncengine.document.diagnostics import Collector
from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.context import Input, LoadContext
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.files import GENERATES, ManifestFile
from syncengine.manifest.read_file import NO_DEFAULTS, read_manifest
from syncengine.manifest.reading import ReadFile, Reading

KEPT_AT_ONCE = 8
"""The number of readings that wait in memory to be stored in the cache together."""


def digests_of(files: Sequence[ManifestFile], cache: ManifestCache) -> list[str] | None:
    """Return the digest of each file with all its inputs, empty if unreadable, or `None` when the cache is empty.

    A file whose inputs are unknown or have changed has the digest of its bytes, under which nothing is cached.
    """
    digests = cache.digests()
    return [_known_digest(file, cache, digests) for file in files] if digests else None


def _known_digest(file: ManifestFile, cache: ManifestCache, digests: Container[str]) -> str:
    sha256, context = file.sha256(), file.context
    if context is None:
        return sha256
    context.note(file.path, sha256)
    if cache.digest(file.name, sha256) in digests:
        return sha256  # it has no other inputs
    inputs = cache.inputs(file.name, sha256)
    if inputs is None:
        return sha256
    from syncengine.manifest.sources.read import are_unchanged  # sources cost more than most manifests

    is_same = are_unchanged(context, (context.root / file.name).parent, inputs)
    return _with_inputs(sha256, context, inputs) if is_same else sha256


def _with_inputs(sha256: str, context: LoadContext, inputs: Sequence[Input]) -> str:
    """Return the digest of a file that generates, of all that its resources depend on."""
    return sha256_of_values((sha256, context.variables, context.environ, inputs))


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
        return ReadFile(Reading(file.name, found=tuple(findings.found), whole=False))
    sha256 = sha256_of(data)
    if context is not None:
        context.note(file.path, sha256)
        context = replace(context, inputs={})
    read = ReadFile(_read(file, data, defaults, context))
    if context is None or not (file.is_template or GENERATES in data):
        return read._replace(sha256=sha256)
    if context.allowance.is_used_up:
        return read  # without a digest it is not cached: its templates may have more time in another run
    inputs = tuple(context.inputs)
    if len({each[:2] for each in inputs}) < len(inputs):
        return read  # an input was replaced meanwhile, and what was read is neither of the old one nor of the new one
    return read._replace(sha256=_with_inputs(sha256, context, inputs), inputs=inputs, content=sha256)


def _read(file: ManifestFile, data: bytes, defaults: DefaultValues, context: LoadContext | None) -> Reading:
    if not file.is_template:
        return read_manifest(data, file.name, defaults, context)
    from syncengine.manifest.read_template import read_template

    return read_template(data, file.name, defaults, context or LoadContext())
