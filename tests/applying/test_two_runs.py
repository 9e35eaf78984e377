"""Two applies of one state at the same time, as real processes (docs/planning.md 1.5)."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import Project, ended
from tests.cli.service import serving

from .bench import category, numbered, tag


def test_of_two_applies_the_second_waits_and_finds_nothing_to_do(tmp_path: Path) -> None:
    """The lock is taken before planning, so that the second run does not repeat the work of the first."""
    with serving() as service:
        project = Project(tmp_path / "project", service.url)
        tags = [tag(name, category="acme") for name in numbered("TAG", 20)]
        project.wants(tagCategories=[category("acme")], tags=tags)
        service.fault("upsertTagCategories", delay=0.3)
        processes = [project.fork("apply", "-y", "--format", "json") for _ in range(2)]
        documents = [ended(process).document for process in processes]
        assert sorted(document["summary"]["requests"] for document in documents) == [0, 2]
        assert sorted({*service.asked()}) == sorted(["teamInfo", "upsertTagCategories", "upsertTags"])
        assert project.plan().changes == ()
