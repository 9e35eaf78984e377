"""Trouble at every operation that writes: the next apply ends where an undisturbed one does."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Estate
from .estate import WRITES
from .program import Project, tag
from .service import AT_ONCE, Service

pytestmark = pytest.mark.slow

HTML = "<html><body>Bad gateway, says nobody in particular</body></html>"

ONCE: dict[str, dict[str, Any]] = {
    "unavailable": {"status": 503, "headers": AT_ONCE},
    "cut-before": {"drop": "before"},
    "cut-after": {"drop": "after"},
    "html": {"status": 200, "body": HTML, "apply": True},
    "refused": {"status": 400, "body": {"message": "not today"}},
}

RETRIED = ("unavailable", "cut-before", "cut-after")

MISREAD = ("upsertTagCategories", "upsertTags", "addKeywords", "deleteTagMetadata", "deleteTag", "startSyncSession")
REFUSING = ("uploadActivityTypes", "upsertTags", "deleteKeyword", "completeSyncSession", "deleteTagCategory")


def test_an_undisturbed_apply_uses_every_operation(estate: Estate) -> None:
    """Otherwise the faults below would meet nothing."""
    assert estate.project.apply().code == 0
    assert set(WRITES) <= set(estate.service.asked())
    estate.assert_ended_undisturbed()
    assert estate.project.run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("kind", RETRIED)
def test_what_may_be_repeated_is_repeated_within_the_run(estate: Estate, kind: str) -> None:
    """One bad moment of every operation costs nobody a second run (docs/planning.md 4.5)."""
    for operation in WRITES:
        estate.service.fault(operation, **ONCE[kind])
    done = estate.project.apply()
    assert (done.code, done.document["summary"]["retries"]) == (0, len(WRITES)), done.err
    assert estate.service.holds() == estate.settled.held
    estate.assert_converges()


def _assert_made_good(estate: Estate, kind: str, operation: str) -> None:
    estate.service.fault(operation, **ONCE[kind])
    done = estate.project.apply()
    assert done.code in (0, 3), done.err
    estate.assert_converges()


@pytest.mark.parametrize("operation", MISREAD)
def test_an_answer_of_a_gateway_is_no_success(estate: Estate, operation: str) -> None:
    """What became of the call is unknown; the next run makes sure (docs/planning.md 4.9)."""
    _assert_made_good(estate, "html", operation)


@pytest.mark.parametrize("operation", REFUSING)
def test_what_was_refused_once_is_done_by_the_next_run(estate: Estate, operation: str) -> None:
    """A refusal keeps the row as it may be, so that the difference is seen again (docs/planning.md 4.3, 4.4)."""
    _assert_made_good(estate, "refused", operation)


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("unavailable", "upsertTags"),
        ("cut-after", "deleteTag"),
        ("html", "completeSyncSession"),
        ("refused", "upsertTagCategories"),
    ],
)
def test_trouble_that_lasts_ends_in_3_and_is_gone_with_its_cause(estate: Estate, kind: str, operation: str) -> None:
    """State saved, exit 3, and the next run brings the rest about (docs/commands.md)."""
    estate.service.fault(operation, **{**ONCE[kind], "times": None})
    done = estate.project.apply()
    assert (done.code, done.document["status"]) == (3, "incomplete")
    assert any(outcome != "applied" for outcome in done.outcomes().values())
    estate.assert_converges()


@pytest.mark.parametrize("kind", ["cut-after", "refused"])
def test_a_cancel_that_fails_blocks_nothing(estate: Estate, kind: str) -> None:
    """The item that kept the session from completing is the trouble, not the cancel (docs/planning.md 3.4, 3.6)."""
    refusal = [{"index": 0, "errorDescription": "not today"}]
    estate.service.fault("uploadActivityTypes", after=1, itemErrors=refusal)
    estate.service.fault("cancelSyncSession", **ONCE[kind])
    assert estate.project.apply().code == 3
    assert "cancelSyncSession" in estate.service.asked()
    estate.assert_converges()


ELSEWHERE: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"{status}": (
            {"status": status, "headers": {"Location": "https://u:s3cret@new.example.com/login?key=s3cret"}},
            f"the service has moved to https://new.example.com/login ({status}): check `service.baseUrl`",
        )
        for status in (301, 302, 307, 308)
    },
    "nowhere": ({"status": 302}, "is redirected (302): check `service.baseUrl`"),
    "407": ({"status": 407}, "a proxy on the way asks for a login (407)"),
    "511": ({"status": 511}, "the network asks for a login (511)"),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_what_never_reached_the_service_is_no_refusal(project: Project, service: Service, kind: str) -> None:
    """One error, exit 9, nothing is repeated, and nothing that was meant to be sent can be set aside for it."""
    fault, words = ELSEWHERE[kind]
    project.wants(tags=[tag("A-1"), tag("B-1")])
    service.fault("upsertTags", **fault, times=None)
    done = project.apply()
    assert (done.code, done.codes) == (9, ["no-state", "unreachable"]), done.err
    assert words in done.out
    assert "s3cret" not in done.out + done.err
    assert service.asked().count("upsertTags") == 1
    set_aside = ("state", "quarantine", "tag/A-1", "--reason", "x", "--until", "2999-01-01")
    assert project.run(*set_aside).code == 1
    service.heal()
    assert project.apply().code == 0


@pytest.mark.parametrize("operation", ["teamInfo", "upsertTagCategories", "startSyncSession", "uploadActivityTypes"])
def test_a_move_is_told_by_any_operation(estate: Estate, operation: str) -> None:
    """Whatever had been applied before it stays recorded, and the next run does the rest."""
    estate.service.fault(operation, status=308, headers={"Location": "https://new.example.com/connect/api"})
    done = estate.project.apply()
    assert done.code in (3, 9)
    assert "the service has moved to https://new.example.com/connect/api (308)" in done.out + done.err
    assert "rejected" not in done.out + done.err
    estate.assert_converges()


@pytest.mark.parametrize("status", [303, 304])
def test_an_answer_that_decides_nothing_leaves_the_outcome_unknown(
    project: Project, service: Service, status: int
) -> None:
    """It may have been executed, as by a service that answers with the place of its result."""
    project.wants(tags=[tag("A-1")])
    service.fault("upsertTags", status=status)
    done = project.apply()
    assert (done.code, done.outcomes()["tag/A-1"]) == (3, "unknown")
    assert project.apply().code == 0


def test_a_login_page_is_told_as_one(project: Project, service: Service) -> None:
    """Its text is nobody's business, and it is no success."""
    project.wants(tags=[tag("A-1")])
    page = {"status": 200, "body": HTML, "headers": {"Content-Type": "text/html; charset=utf-8"}}
    for operation in ("upsertTags", "teamInfo"):
        service.fault(operation, **page)
        done = project.apply()
        assert done.code in (3, 9)
        assert "a login page, a proxy or a portal answered instead of the service" in done.out + done.err
        assert "says nobody" not in done.out + done.err
        service.heal()


AROUND: dict[str, tuple[dict[str, str], int, str]] = {
    "exceptions alone": ({"NO_PROXY": "localhost,127.0.0.1,fd00::/8,[::1"}, 0, ""),
    "SOCKS for others": ({"ALL_PROXY": "socks4://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}, 0, ""),
    "SOCKS": ({"ALL_PROXY": "socks4://127.0.0.1:9"}, 64, "ALL_PROXY names a kind of proxy that is not supported"),
    "no URL": ({"http_proxy": "http://[::1"}, 64, "http_proxy names no valid URL"),
    "nobody there": ({"HTTP_PROXY": "127.0.0.1:9"}, 9, "the proxy 127.0.0.1:9 (HTTP_PROXY) cannot be reached"),
    "no authorities": (
        {"SYNCENGINE_BASE_URL": "https://127.0.0.1:9/connect/api", "SSL_CERT_FILE": "/no/such/ca.pem"},
        64,
        "SSL_CERT_FILE names /no/such/ca.pem, which does not exist",
    ),
}


@pytest.mark.parametrize("kind", AROUND)
def test_proxies_and_authorities_of_the_environment(project: Project, kind: str) -> None:
    """What no repeat cures says which variable is wrong, and is no bug."""
    variables, code, words = AROUND[kind]
    project.wants(tags=[tag("A-1")])
    done = project.apply(environ=variables)
    assert (done.code, words in done.out) == (code, True), done.out
    assert ("bug" in done.out, "repeat unchanged" in done.out) == (False, code == 9)


def test_the_embedded_sandbox_is_behind_no_proxy(project: Project) -> None:
    """Wherever the proxy would lead."""
    project.wants(tags=[tag("A-1")])
    assert project.run("apply", "-y", "--sandbox", environ={"HTTP_PROXY": "http://127.0.0.1:9"}).code == 0
