"""A PostgreSQL state that becomes unreachable during an apply."""

from __future__ import annotations

import pytest

from tests.postgresql import PASSWORD, Server

from .program import Project, category, ended, tag
from .service import Service

pytestmark = pytest.mark.slow

HERE = [tag(f"T-{n}", category="acme") for n in range(3)]


def test_a_state_lost_during_an_apply_is_reported_and_the_next_apply_converges(
    project: Project, service: Service, server: Server
) -> None:
    """The report says that changes which were acknowledged but could not be recorded are in doubt."""
    project.environ["SYNCENGINE_STATE"] = server.url()
    project.wants(tagCategories=[category("acme")], tags=HERE)
    assert project.run("apply", "-y", "--new-state").code == 0
    project.wants(tagCategories=[category("acme")], tags=[*HERE, tag("NEW-1", category="acme")])
    service.fault("upsertTags", delay=2)
    process = project.fork("apply", "-y")
    service.wait_for("upsertTags", 2)
    server.stop()
    done = ended(process)
    assert done.code == 1
    assert "error[state-unreachable]" in done.out
    assert "it could not record are in doubt" in done.out
    assert PASSWORD not in done.out + done.err
    refused = project.run("apply", "-y")
    assert (refused.code, "nothing is listening" in refused.err, "No problems" in refused.out + refused.err) == (
        1,
        True,
        False,
    )
    server.start()
    service.heal()
    assert project.run("apply", "-y").code == 0
    assert project.run("plan", "--detailed-exitcode").code == 0
    assert service.tags() == ["NEW-1", "T-0", "T-1", "T-2"]
