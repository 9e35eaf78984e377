"""Faults on the way to the service: what is retried, what never reached it, and what the message says."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Estate
from .estate import WRITES
from .program import Project, tag
from .service import AT_ONCE, Service

pytestmark = pytest.mark.slow

HTML = "<html><body>Bad gateway, says nobody in particular</body></html>"


def test_an_undisturbed_apply_uses_every_operation(estate: Estate) -> None:
    """The estate uses every operation, so each fault below takes effect."""
    assert estate.project.apply().code == 0
    assert set(WRITES) <= set(estate.service.asked())
    estate.assert_ended_undisturbed()
    assert estate.project.run("plan", "--detailed-exitcode").code == 0


TRANSIENT: dict[str, dict[str, Any]] = {
    "unavailable": {"status": 503, "headers": AT_ONCE},
    "cut before it is read": {"drop": "before"},
    "cut after it was executed": {"drop": "after"},
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_one_transient_fault_of_each_operation_needs_no_second_run(estate: Estate, fault: dict[str, Any]) -> None:
    """Each call is repeated within the run (docs/planning.md 4.5). tests/applying/test_trouble.py has other faults."""
    for operation in WRITES:
        estate.service.fault(operation, **fault)
    done = estate.project.apply()
    assert (done.code, done.document["summary"]["retries"]) == (0, len(WRITES)), done.err
    assert estate.service.holds() == estate.settled.held
    estate.assert_converges()


def test_a_lasting_fault_ends_in_3_and_the_next_run_converges(estate: Estate) -> None:
    """The state is saved, and the next run without the fault applies the rest (docs/commands.md)."""
    estate.service.fault("upsertTags", status=503, headers=AT_ONCE, times=None)
    done = estate.project.apply()
    assert (done.code, done.document["status"]) == (3, "incomplete")
    assert any(outcome != "applied" for outcome in done.outcomes().values())
    estate.assert_converges()


ELSEWHERE: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"{status}": (
            {"status": status, "headers": {"Location": "https://u:s3cret@new.example.com/login?key=s3cret"}},
            f"the service has moved to https://new.example.com/login ({status}): check `service.baseUrl`",
        )
        for status in (301, 308)
    },
    "nowhere": ({"status": 302}, "is redirected (302): check `service.baseUrl`"),
    "407": ({"status": 407}, "a proxy on the way asks for a login (407)"),
    "511": ({"status": 511}, "the network asks for a login (511)"),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_what_never_reached_the_service_is_no_refusal(project: Project, service: Service, kind: str) -> None:
    """A redirect or proxy answer exits with 9 without retries, and its items cannot be quarantined."""
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


@pytest.mark.parametrize("operation", ["teamInfo", "uploadActivityTypes"])
def test_a_permanent_redirect_is_reported_for_any_operation(estate: Estate, operation: str) -> None:
    """Changes applied before the redirect stay recorded, and the next run applies the rest."""
    estate.service.fault(operation, status=308, headers={"Location": "https://new.example.com/connect/api"})
    done = estate.project.apply()
    assert done.code in (3, 9)
    assert "the service has moved to https://new.example.com/connect/api (308)" in done.out + done.err
    assert "rejected" not in done.out + done.err
    estate.assert_converges()


def test_an_answer_that_decides_nothing_leaves_the_outcome_unknown(project: Project, service: Service) -> None:
    """The service may have executed a call that it answers with 303."""
    project.wants(tags=[tag("A-1")])
    service.fault("upsertTags", status=303)
    done = project.apply()
    assert (done.code, done.outcomes()["tag/A-1"]) == (3, "unknown")
    assert project.apply().code == 0


def test_a_login_page_is_reported_as_such(project: Project, service: Service) -> None:
    """An HTML answer with status 200 is no success, and its text is not shown."""
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
def test_a_bad_proxy_or_certificate_of_the_environment_is_named(project: Project, kind: str) -> None:
    """The message has the name of the variable, and does not speak of a bug. What is not used does no harm."""
    variables, code, words = AROUND[kind]
    project.wants(tags=[tag("A-1")])
    done = project.apply(environ=variables)
    assert (done.code, words in done.out) == (code, True), done.out
    assert ("bug" in done.out, "repeat unchanged" in done.out) == (False, code == 9)


def test_the_embedded_sandbox_is_behind_no_proxy(project: Project) -> None:
    """`--sandbox` ignores the proxy of the environment."""
    project.wants(tags=[tag("A-1")])
    assert project.run("apply", "-y", "--sandbox", environ={"HTTP_PROXY": "http://127.0.0.1:9"}).code == 0
