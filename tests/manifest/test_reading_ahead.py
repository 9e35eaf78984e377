"""Large manifests that are not cached are read by processes from the start, while the rest of planning is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from syncengine.document.reader import MAX_BYTES
from syncengine.errors import Problems
from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.desired import Desired, ManifestSet, manifest_set, manifests_ahead
from syncengine.project.load import load_project
from tests.manifest.loading import write

FEW = 12_000
LARGE = {
    f"manifests/{part}.yaml": "tags:\n"
    + "".join(f"  - name: Matter {part}{n:05}\n    description: {'long ' * 8}{n}\n" for n in range(FEW))
    for part in "ab"
}
CATEGORY = "tagCategories:\n  - externalId: C\n    label: One\ntags:\n  - name: Matter of C\n    category: C\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """More than is read by one process, and a category."""
    assert 1_000_000 < sum(map(len, LARGE.values())) < MAX_BYTES
    write(tmp_path, {**LARGE, "manifests/c.yaml": CATEGORY})
    return tmp_path


def read(manifests: ManifestSet, folder: Path) -> Desired:
    with ManifestCache(folder / ".syncengine", manifests.defaults) as cache:
        return manifests.read(cache)


def test_the_resources_are_the_same(folder: Path) -> None:
    """In the same order. With a cache nothing is read ahead, nor with little to read."""
    project = load_project(folder=folder, environ={})
    plain = manifest_set(project).read()
    with manifests_ahead(project) as manifests:
        assert manifests.ahead is not None
        assert read(manifests, folder) == plain
    assert list(plain.resources)[-1].name == "Matter of C"
    with manifests_ahead(project) as manifests:
        assert manifests.ahead is None
        assert read(manifests, folder) == plain


def test_a_cache_that_appears_meanwhile_is_used(folder: Path) -> None:
    """Another program may plan at the same time; what was read ahead is of no use then."""
    project = load_project(folder=folder, environ={})
    with manifests_ahead(project) as manifests:
        plain = read(manifests._replace(ahead=None), folder)
        assert read(manifests, folder) == plain


def test_problems_of_files_are_reported_as_ever(folder: Path) -> None:
    """Those of one file and those between files."""
    write(folder, {"manifests/c.yaml": CATEGORY.replace("category: C", "category: D"), "manifests/d.yaml": "tags: 5\n"})
    project = load_project(folder=folder, environ={})
    with pytest.raises(Problems) as expected:
        manifest_set(project).read()
    with pytest.raises(Problems) as found, manifests_ahead(project) as manifests:
        manifests.read()
    assert found.value.found == expected.value.found
    assert {each.code for each in found.value.found} == {"unknown-category", "wrong-type"}


def test_an_error_in_between_stops_the_processes(folder: Path) -> None:
    """Exit 64, and none of them is left."""
    command = [sys.executable, "-m", "syncengine", "plan", "--sandbox", "--sweep", "--target", "tag/x"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, start_new_session=True)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 64
    assert b"--sweep" in err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
