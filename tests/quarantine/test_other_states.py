"""Quarantine and undo in a state on PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from tests import postgresql
from tests.cli.program import Project, activity_type, category, tag
from tests.cli.test_undo import last
from tests.cli.test_undo import undo as take_back

from .refusing import Refusing
from .test_quarantine import QUARANTINE, aside, planned

pytestmark = pytest.mark.slow


def test_quarantine_and_undo_in_postgresql(project: Project, service: Refusing) -> None:
    """A refused tag waits while the rest of its run is undone; applying the undone changes again is refused."""
    with postgresql.running() as server:
        project.environ["SYNCENGINE_STATE"] = server.url()
        types = [activity_type("A"), activity_type("GOES")]
        edited: dict[str, Any] = {"tagCategories": [category("new", previously=["old"])], "activityTypes": types[:1]}
        project.wants(tagCategories=[category("old")], activityTypes=types, tags=members("old", "one"))
        assert project.run("apply", "-y", "--new-state").code == 0
        held = project.rows()
        service.refuse("BAD")
        project.wants(**edited, tags=members("new", "two"))
        assert project.apply().code == 3
        run = last(project)
        aside(project, "tag/BAD")
        assert planned(project)[0] == 0
        planned_undo = take_back(project, run).document
        assert planned_undo["undo"]["leftOut"] == ["tag/BAD"]
        service.heal()
        assert project.run(*QUARANTINE, "tag/BAD", "--end").code == 0
        assert "undone" in project.apply().codes
        take_back(project, run)
        held["activity-type/GOES"]["fields"]["reenableIfArchived"] = True  # with it the undo revived the type
        assert {name: row for name, row in project.rows().items() if row["status"] != "deleted"} == held
        assert service.types() == {"A", "GOES"}
        assert project.apply("--redo").code == 0
        assert planned(project)[0] == 0


def members(name: str, text: str) -> list[dict[str, Any]]:
    return [tag(each, category=name, description=text) for each in ("GOOD", "BAD")]
