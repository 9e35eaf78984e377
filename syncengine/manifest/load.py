"""files → readings, in their order: from the cache, read here, or where there is much to read on every processor."""

from __future__ import annotations

import os
import signal
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import NamedTuple

import msgspec

from syncengine.document.diagnostics import Findings
from syncengine.document.digest import sha256_of
from syncengine.document.gc_pause import no_collection
from syncengine.manifest.cache import ManifestCache, Packed
from syncengine.manifest.context import Given
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.files import GENERATES, ManifestFile
from syncengine.manifest.read_file import NO_DEFAULTS, Compared, Reading, compared, read_manifest

MUCH = 1_000_000
"""Bytes from which on more processes are worth their start."""
AT_ONCE = 4
"""Files that a process is given at a time."""
_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM})
KEPT_AT_ONCE = 32
"""Files whose readings wait in memory for the cache."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reading).decode


class Read(NamedTuple):
    """A file's reading, what is compared of it, and the SHA-256 of its bytes; empty if it cannot be read."""

    reading: Reading
    compared: Compared
    sha256: str


class Fresh(NamedTuple):
    """What has been read. `of_rows`: a later reading may take over what is made of rows.

    `reading` None: only `packed` comes from another process.
    """

    packed: Packed
    sha256: str
    of_rows: bool = False
    reading: Reading | None = None


class Reread(NamedTuple):
    """A file that must be read, and its last reading where that is of use, in MessagePack if it was not needed yet."""

    file: ManifestFile
    former: bytes | Reading | None = None


def digests_of(files: Sequence[ManifestFile], cache: ManifestCache) -> list[str]:
    """The digest of each file and of all that it depends on; empty if it cannot be read.

    Bytes that have an entry by themselves depend on nothing else, and are not looked through for what they generate.
    """
    known = cache.known()
    return [(known and _known_digest(file, cache, known)) or _whole_digest(file) for file in files]


def _known_digest(file: ManifestFile, cache: ManifestCache, known: Container[str]) -> str:
    sha256 = file.sha256()
    return sha256 if cache.digest(file.name, sha256) in known else ""


def _whole_digest(file: ManifestFile) -> str:
    data = file.content(Findings(file.name))
    return "" if data is None else _digest(file, data)


def _digest(file: ManifestFile, data: bytes) -> str:
    if file.given is None or not (file.is_template or GENERATES in data):
        return sha256_of(data)
    from syncengine.manifest.dependencies import (
        digest_with_inputs,  # templates and sources cost more than most manifests
    )

    return digest_with_inputs(file, data, file.given)


def read_all(
    files: Sequence[ManifestFile],
    defaults: DefaultValues = NO_DEFAULTS,
    cache: ManifestCache | None = None,
    digests: Sequence[str] | None = None,
) -> Iterator[Read]:
    """Every file's reading; what is not in the cache is put there. `digests`: those of the files, if known."""
    if cache is None:
        yield from (unpacked(fresh) for fresh in _fresh([Reread(file) for file in files], defaults))
        return
    hashed = digests if digests is not None else digests_of(files, cache)
    entries = list(cache.entries(files, hashed).values())
    known = cache.has(entries)
    missing = [file for file, entry in zip(files, entries, strict=True) if entry not in known]
    fresh = _fresh([reread(file, cache) for file in missing], defaults)
    new: list[tuple[str, Fresh]] = []
    for file, entry, sha256 in zip(files, entries, hashed, strict=True):
        read = _cached(cache, entry, sha256) if entry in known else None
        if read is None:
            found = next(fresh) if entry not in known else read_one(Reread(file), defaults)
            if found.sha256:
                new.append((file.name, found))
                if len(new) >= KEPT_AT_ONCE:
                    keep(new, cache)
                    new = []
            read = unpacked(found)
        yield read
    keep(new, cache)


def reread(file: ManifestFile, cache: ManifestCache) -> Reread:
    """A file that has changed since it was read."""
    return Reread(file, None if file.given is None else cache.latest(file.name))


def keep(new: Iterable[tuple[str, Fresh]], cache: ManifestCache) -> None:
    """Put readings of the files of these names into the cache."""
    found = [(name, cache.digest(name, fresh.sha256), fresh) for name, fresh in new]
    cache.put((digest, fresh.packed) for _, digest, fresh in found)
    cache.put_latest((name, digest) for name, digest, fresh in found if fresh.of_rows)


def _cached(cache: ManifestCache, entry: str, sha256: str) -> Read | None:
    packed = cache.get(entry)
    try:
        return None if packed is None else unpacked(Fresh(packed, sha256))
    except (msgspec.DecodeError, TypeError):
        return None


def unpacked(fresh: Fresh) -> Read:
    """The values of it; msgspec.DecodeError if they are not what this version writes."""
    packed = fresh.packed
    reading = fresh.reading or _decode(packed.reading)
    return Read(reading, Compared(packed.names, packed.words, packed.parts), fresh.sha256)


def _fresh(files: Sequence[Reread], defaults: DefaultValues) -> Iterator[Fresh]:
    processes = _processes([each.file for each in files])
    if processes < 2:
        return (read_one(file, defaults) for file in files)
    return _in_processes(files, defaults, processes)


def read_one(asked: Reread, defaults: DefaultValues) -> Fresh:
    """One file, from its bytes on."""
    file, former = asked
    findings = Findings(file.name)
    data = file.content(findings)
    if data is None:
        return Fresh(Packed(_encode(Reading(file.name, found=tuple(findings.found), whole=False)), "", ""), "")
    with no_collection():
        reading = _read(file, data, defaults, former)
    packed = Packed(_encode(reading), *compared(reading, file.given.compares_parts if file.given else 0))
    if file.given and file.given.allowance.is_used_up:
        return Fresh(packed, "", reading=reading)  # another day, its templates have the time that others took today
    return Fresh(packed, _digest(file, data), of_rows=bool(reading.rows), reading=reading)


def _read_here(asked: Reread, defaults: DefaultValues) -> Fresh:
    """The same in a process of its own, which need not say it twice."""
    if _stopped.is_asked:
        raise KeyboardInterrupt
    _stopped.is_reading = True
    try:
        return read_one(asked, defaults)._replace(reading=None)
    finally:
        _stopped.is_reading = False


def _read(file: ManifestFile, data: bytes, defaults: DefaultValues, former: bytes | Reading | None) -> Reading:
    if not file.is_template:
        return read_manifest(data, file.name, defaults, file.given, _former(former))
    from syncengine.manifest.read_template import read_template

    return read_template(data, file.name, defaults, file.given or Given())


def _former(given: bytes | Reading | None) -> Reading | None:
    """None where it is not what this version writes."""
    with suppress(msgspec.DecodeError):
        return _decode(given) if isinstance(given, bytes) else given
    return None


def _processes(files: Sequence[ManifestFile]) -> int:
    """How many are worth it; more than one only where they come to life without reading the program again."""
    import multiprocessing

    if "fork" not in multiprocessing.get_all_start_methods() or sum(file.size() for file in files) < MUCH:
        return 1
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, len(files))


def _in_processes(files: Sequence[Reread], defaults: DefaultValues, processes: int) -> Iterator[Fresh]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    with ProcessPoolExecutor(processes, mp_context=get_context("fork"), initializer=_stopped.listen) as pool:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)  # until a new process has its own handlers
        try:
            found = pool.map(partial(_read_here, defaults=_without_nodes(defaults)), files, chunksize=AT_ONCE)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            yield from found
        except BaseException:
            for child in active_children():
                child.terminate()
            raise


class _Stopped:
    """Whether this process was asked to stop, which interrupts reading; an answer under way is always sent whole."""

    def __init__(self) -> None:
        self.is_asked = self.is_reading = False

    def listen(self) -> None:
        """In a new process: Ctrl-C goes to all processes of a terminal, and the first one tells of it."""
        for number in _STOPPING:
            signal.signal(number, self._ask)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.is_asked, was_reading, self.is_reading = True, self.is_reading, False
        if was_reading:
            raise KeyboardInterrupt


_stopped = _Stopped()


def _without_nodes(defaults: DefaultValues) -> DefaultValues:
    """What another process needs of them: marks of nodes belong to the parser of this one."""
    return DefaultValues(defaults.values, {}, defaults.file)
