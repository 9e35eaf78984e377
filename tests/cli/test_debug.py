"""`--debug` logs each request to the service on stderr, without its content."""

from __future__ import annotations

import json

import pytest

from .program import Project, category, tag
from .service import AT_ONCE, Service

NAMES = ("Confidential-1", "Confidential-2", "Confidential-3")


def requests_in(err: str) -> list[str]:
    return [line.removeprefix("debug: ") for line in err.splitlines() if line.startswith("debug: ")]


def wanted(project: Project) -> None:
    project.wants(tagCategories=[category("private-client")], tags=[tag(name) for name in NAMES])


def test_each_request_is_logged_with_its_status_time_and_sizes(project: Project, service: Service) -> None:
    """Retries are logged too. Items are counted, but their names are not logged."""
    service.fault("upsertTags", status=503, headers=AT_ONCE)
    wanted(project)
    done = project.run("--debug", "apply", "-y", "-q", "--format", "json")
    assert done.code == 0
    told = requests_in(done.err)
    assert [line.partition(", ")[0] for line in told] == [
        "GET /team/info (teamInfo): 200",
        "POST /tagcategory/batch (upsertTagCategories): 200",
        "POST /tag/batch (upsertTags): 503",
        "POST /tag/batch (upsertTags): 200",
    ]
    assert told[-1].endswith(" received, 3 items")
    assert " s, 0 bytes sent, " in told[0]
    assert not [word for word in (*NAMES, "private-client", "x-api-key") if word in done.err]


def test_without_debug_no_request_is_logged(project: Project) -> None:
    """Stderr is empty: neither the program nor a library writes to it."""
    wanted(project)
    done = project.run("apply", "-y", "-q", "--format", "json")
    assert (done.code, done.err) == (0, "")


def test_an_attempt_without_an_answer_is_logged(project: Project, service: Service) -> None:
    """ "no answer" takes the place of the status."""
    service.fault("upsertTags", drop="before")
    wanted(project)
    done = project.run("apply", "-y", "-q", "--debug")
    assert done.code == 0
    assert [line for line in requests_in(done.err) if line.startswith("POST /tag/batch (upsertTags): no answer")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("time", "list", "--limit", "7"), "GET /postedtime/list?limit=7 (listPostedTime): 200"),
        (("connector", "check"), "GET /team/info (teamInfo): 200"),
        (("health", "clear"), "POST /healthcheck/failure/rescind (rescindHealthFailure): 20"),
    ],
)
def test_other_commands_log_their_requests(project: Project, arguments: tuple[str, ...], told: str) -> None:
    """`time`, `connector` and `health` commands log their requests with `--debug`."""
    done = project.run(*arguments, "--debug")
    assert done.code == 0, done.err
    assert any(line.startswith(told) for line in requests_in(done.err)), done.err


def test_requests_are_logged_as_json_with_log_format_json(project: Project) -> None:
    """Each request is one JSON line with the same facts."""
    wanted(project)
    done = project.run("apply", "-y", "--debug", "--log-format", "json")
    told = [line for line in map(json.loads, done.err.splitlines()) if line["level"] == "debug"]
    last = told[-1]
    assert (last["operation"], last["method"], last["path"], last["status"], last["items"]) == (
        "upsertTags",
        "POST",
        "/tag/batch",
        200,
        3,
    )
    assert last["sent"] > 0
    assert last["seconds"] > 0
