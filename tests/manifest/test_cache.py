"""The manifest cache: if it is missing, damaged, foreign or in use, manifests are read from their files."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from syncengine.errors import Problems
from syncengine.manifest.cache import ManifestCache, Settled, seal, unseal
from syncengine.manifest.context import LoadContext
from syncengine.manifest.desired import Desired, manifest_set, read_all
from syncengine.manifest.files import ManifestFile
from syncengine.manifest.read_file import NO_DEFAULTS
from syncengine.manifest.resources import DefaultValues, ReadFile, Reading
from syncengine.project.load import load_project
from syncengine.project.model import Level
from syncengine.resource import Kind
from tests.manifest.loading import write


@pytest.fixture
def file(tmp_path: Path) -> ManifestFile:
    (tmp_path / "one.yaml").write_text("tags:\n- {name: T-1, keywords: [Straße]}\n", encoding="utf-8")
    return ManifestFile(tmp_path / "one.yaml", "one.yaml")


def cache_in(folder: Path, defaults: DefaultValues = NO_DEFAULTS) -> ManifestCache:
    return ManifestCache(folder / "cache", defaults)


def filled(folder: Path, file: ManifestFile) -> Path:
    """Fill a cache with the file and a basis, and return its path."""
    with cache_in(folder) as cache:
        list(read_all([file], NO_DEFAULTS, cache))
        entries = cache.entries([file], [file.sha256()])
        cache.remember("name", Settled(entries, 1, (), generation="g"))
    return folder / "cache" / "cache.db"


def read_with(folder: Path, file: ManifestFile) -> bool:
    """Whether reading with the cache gives the same as reading without it."""
    with cache_in(folder) as cache:
        return list(read_all([file], NO_DEFAULTS, cache)) == list(read_all([file]))


def knows(folder: Path, file: ManifestFile) -> tuple[bool, bool, bool]:
    """Whether the cache has the file's entry, the basis of that name, and a basis of exactly these entries."""
    with cache_in(folder) as cache:
        entries = cache.entries([file], [file.sha256()])
        known = cache.get(entries[file.name]) is not None
        return known, cache.settled("name") is not None, cache.find_basis(entries, {}) is not None


def test_a_read_file_is_in_the_cache(tmp_path: Path, file: ManifestFile) -> None:
    filled(tmp_path, file)
    assert knows(tmp_path, file) == (True, True, True)
    assert read_with(tmp_path, file)


def test_entries_differ_by_content_name_and_defaults(tmp_path: Path, file: ManifestFile) -> None:
    with (
        cache_in(tmp_path) as cache,
        cache_in(tmp_path, DefaultValues({Kind.TAG: {"path": "/"}}, {}, "syncengine.yaml")) as other,
    ):
        digests = {cache.digest("a", "1"), cache.digest("a", "2"), cache.digest("b", "1"), other.digest("a", "1")}
    assert len(digests) == 4


def test_a_basis_is_not_used_for_other_levels_of_diagnostics(tmp_path: Path, file: ManifestFile) -> None:
    filled(tmp_path, file)
    with cache_in(tmp_path) as cache:
        entries = cache.entries([file], [file.sha256()])
        assert cache.find_basis(entries, {"same-keyword": Level.ERROR}) is None


DAMAGE = {
    "emptied": ": > cache.db",
    "not a database": "yes nonsense | head -c 9999 > cache.db",
    "a folder": "rm cache.db; mkdir cache.db",
    "no folder": "rm -r ../cache; echo 'a file where the folder should be' > ../cache",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_cache_is_ignored(tmp_path: Path, file: ManifestFile, damage: str) -> None:
    """Plans with other damages are in tests/planning/test_cached_plans.py."""
    subprocess.run(["sh", "-ec", damage], cwd=filled(tmp_path, file).parent, check=True)
    assert not knows(tmp_path, file)[0]
    assert read_with(tmp_path, file)


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


@pytest.mark.parametrize("tables", [("entry", "reading"), ("basis", "content")], ids=" ".join)
def test_a_cache_with_other_tables_is_ignored(tmp_path: Path, file: ManifestFile, tables: tuple[str, str]) -> None:
    table, column = tables
    change(filled(tmp_path, file), f"ALTER TABLE {table} RENAME COLUMN {column} TO else_")
    assert read_with(tmp_path, file)


@pytest.mark.parametrize("value", ["NULL", "7", "'text'", "x'00'", "x'00' || {column}", "substr({column}, 1, 5)"])
def test_a_damaged_row_is_ignored_and_an_entry_is_replaced(tmp_path: Path, file: ManifestFile, value: str) -> None:
    path = filled(tmp_path, file)
    change(path, f"UPDATE basis SET content = {value.format(column='content')}")
    assert knows(tmp_path, file) == (True, False, False)
    change(path, f"UPDATE entry SET reading = {value.format(column='reading')}")
    assert not knows(tmp_path, file)[0]
    assert read_with(tmp_path, file)
    assert knows(tmp_path, file)[0]


def test_a_seal_detects_any_changed_bit() -> None:
    whole = seal(b"what was read")
    for bit in range(len(whole) * 8):
        other = bytearray(whole)
        other[bit // 8] ^= 1 << bit % 8
        assert unseal(bytes(other)) is None
    assert unseal(whole) == b"what was read"


def test_a_read_only_cache_is_used(tmp_path: Path, file: ManifestFile) -> None:
    filled(tmp_path, file).chmod(0o400)
    with cache_in(tmp_path) as cache:
        cache.keep([ReadFile(Reading("more.yaml"), "0")])
    assert read_with(tmp_path, file)


def test_an_entry_deleted_during_a_read_is_replaced_by_the_file(tmp_path: Path, file: ManifestFile) -> None:
    filled(tmp_path, file)
    with cache_in(tmp_path) as cache, cache_in(tmp_path) as other:
        reading = read_all([file, ManifestFile(file.path, "two.yaml")], NO_DEFAULTS, cache)
        first = next(reading)
        other.remember("name", Settled({}, 0, ()))
        assert [first, *reading] == list(read_all([file, ManifestFile(file.path, "two.yaml")]))


def test_a_file_changed_after_its_hash_is_cached_under_the_new_digest(tmp_path: Path, file: ManifestFile) -> None:
    """The digest of an entry is that of the bytes that were read."""
    before = file.sha256()
    file.path.write_text("tags: [{name: T-2}]\n")
    with cache_in(tmp_path) as cache:
        list(read_all([file], NO_DEFAULTS, cache, [before]))
        assert cache.get(cache.digest(file.name, before)) is None
        assert cache.get(cache.digest(file.name, file.sha256())) is not None


def test_a_file_that_cannot_be_read_is_neither_cached_nor_one_that_changed(tmp_path: Path) -> None:
    """Its error says why. With a digest of its own, the plan would be refused as made of other inputs."""
    context = LoadContext(tmp_path)
    unreadable = ManifestFile(tmp_path / "not-there.yaml", "not-there.yaml", context=context)
    with cache_in(tmp_path) as cache:
        (read,) = read_all([unreadable], NO_DEFAULTS, cache)
        assert cache.get(cache.digest("not-there.yaml", "")) is None
    assert ([d.code for d in read.reading.found], context.read) == (["unreadable-file"], {})


def test_entries_without_a_basis_are_deleted(tmp_path: Path, file: ManifestFile) -> None:
    filled(tmp_path, file)
    with cache_in(tmp_path) as cache:
        cache.keep([ReadFile(Reading("more.yaml"), "0")])
        kept = cache.settled("name")
        assert kept is not None
        assert cache.digests() == {*kept.files.values(), cache.digest("more.yaml", "0")}
        cache.remember("name", kept)
        assert cache.digests() == set(kept.files.values())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_cache_of_another_user_is_deleted(tmp_path: Path, file: ManifestFile) -> None:
    """Its owner could claim that manifests have no problems, or other resources than their files."""
    os.chown(filled(tmp_path, file), 1, -1)
    assert knows(tmp_path, file) == (False, False, False)
    assert read_with(tmp_path, file)


def made(folder: Path) -> Desired:
    """What the manifests of a project declare, read with the cache in its folder."""
    with cache_in(folder) as cache:
        return manifest_set(load_project(folder=folder, environ={})).read(cache)


def test_a_section_written_with_escapes_depends_on_its_data(tmp_path: Path) -> None:
    """What is kept of it is not used for other rows."""
    text = '"gener\\x61te":\n- {forEach: {csv: ../r.csv}, tags: [{name: "T-{{ row.n }}"}]}\n'
    write(tmp_path, {"manifests/m.yaml": text})
    for rows, count in (("n\n1\n", 1), ("n\n1\n2\n", 2)):
        write(tmp_path, {"r.csv": rows})
        assert len(made(tmp_path).resources) == count


def test_a_file_whose_templates_had_no_time_left_is_read_again(tmp_path: Path) -> None:
    """In another run they may have more, so that nothing is kept of their error."""
    write(tmp_path, {"manifests/m.yaml.j2": "tags:\n- name: T-1\n"})
    late = manifest_set(load_project(folder=tmp_path, environ={}))
    assert late.context is not None
    late.context.allowance.remaining = 0
    with cache_in(tmp_path) as cache, pytest.raises(Problems):
        late.read(cache)
    assert len(made(tmp_path).resources) == 1


def test_a_link_to_an_equal_file_leads_to_another_source(tmp_path: Path) -> None:
    """The name of a source decides whether it lost rows, so that it is no other file's."""
    text = 'generate:\n- {forEach: {csv: ../now.csv}, tags: [{name: "T-{{ row.n }}"}]}\n'
    write(tmp_path, {"a.csv": "n\n1\n", "b.csv": "n\n1\n", "manifests/m.yaml": text})
    for name in ("a.csv", "b.csv"):
        (tmp_path / "now.csv").unlink(missing_ok=True)
        (tmp_path / "now.csv").symlink_to(name)
        assert list(made(tmp_path).rows_of_sources()) == [name]
