"""`--debug` logs each request to the service on stderr, without its content."""

from __future__ import annotations

import json

import pytest

from .program import Project, category, tag
from .service import AT_ONCE, Service

NAMES = ("Confidential-1", "Confidential-2", "Confidential-3")


def requests_in(err: str) -> list[str]:
    return [line.removeprefix("debug: ") for line in err.splitlines() if line.startswith("debug: ")]


@pytest.fixture
def wanting(project: Project) -> Project:
    project.wants(tagCategories=[category("private-client")], tags=[tag(name) for name in NAMES])
    return project


def test_each_request_is_logged_with_its_status_time_and_sizes(wanting: Project, service: Service) -> None:
    """So are retries; "no answer" takes the place of a status. Items are counted, but their names are not logged."""
    service.fault("upsertTagCategories", status=503, headers=AT_ONCE)
    service.fault("upsertTags", drop="before")
    done = wanting.run("--debug", "apply", "-y", "-q", "--format", "json")
    assert done.code == 0
    told = requests_in(done.err)
    assert [line.partition(", ")[0] for line in told] == [
        "GET /team/info (teamInfo): 200",
        "POST /tagcategory/batch (upsertTagCategories): 503",
        "POST /tagcategory/batch (upsertTagCategories): 200",
        "POST /tag/batch (upsertTags): no answer: the connection was closed by the other side",
        "POST /tag/batch (upsertTags): 200",
    ]
    assert told[-1].endswith(" received, 3 items")
    assert " s, 0 bytes sent, " in told[0]
    assert not [word for word in (*NAMES, "private-client", "x-api-key") if word in done.err]


def test_without_debug_no_request_is_logged(wanting: Project) -> None:
    """Stderr is empty: neither the program nor a library writes to it."""
    done = wanting.run("apply", "-y", "-q", "--format", "json")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("time list --limit 7", "GET /postedtime/list?limit=7 (listPostedTime): 200"),
        ("connector check", "GET /team/info (teamInfo): 200"),
        ("health clear", "POST /healthcheck/failure/rescind (rescindHealthFailure): 20"),
    ],
)
def test_other_commands_log_their_requests(project: Project, words: str, told: str) -> None:
    done = project.run(*words.split(), "--debug")
    assert done.code == 0, done.err
    assert any(line.startswith(told) for line in requests_in(done.err)), done.err


def test_requests_are_logged_as_json_with_log_format_json(wanting: Project) -> None:
    """Each request is one JSON line with the same facts."""
    done = wanting.run("apply", "-y", "--debug", "--log-format", "json")
    last = [line for line in map(json.loads, done.err.splitlines()) if line["level"] == "debug"][-1]
    facts = {"operation": "upsertTags", "method": "POST", "path": "/tag/batch", "status": 200, "items": 3}
    assert facts.items() <= last.items()
    assert last["sent"] > 0
    assert last["seconds"] > 0
