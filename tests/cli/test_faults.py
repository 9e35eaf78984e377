"""Answers that come from elsewhere than the service, and what the message says. tests/applying has faults of it."""

from __future__ import annotations

from typing import Any

import pytest

from .program import Project, tag
from .service import Service

pytestmark = pytest.mark.slow

TO_LOGIN = {"Location": "https://u:s3cret@new.example.com/login?key=s3cret"}
MOVED = "the service has moved to https://new.example.com/login ({}): check `service.baseUrl`"
ELSEWHERE: dict[str, tuple[dict[str, Any], str]] = {
    "301": ({"status": 301, "headers": TO_LOGIN}, MOVED.format(301)),
    "308": ({"status": 308, "headers": TO_LOGIN}, MOVED.format(308)),
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


def test_what_was_applied_before_a_redirect_stays_recorded(project: Project, service: Service) -> None:
    """The redirect is reported, and the next run applies the rest, as after an answer 303, which decides nothing."""
    project.wants(tagCategories=[{"externalId": "acme"}], tags=[tag("A-1", category="acme")])
    service.fault("upsertTags", **ELSEWHERE["308"][0])
    done = project.apply()
    assert (done.code, ELSEWHERE["308"][1] in done.out + done.err) == (3, True), done.out
    assert "rejected" not in done.out + done.err
    service.fault("upsertTags", status=303)
    done = project.apply()
    assert (done.code, done.outcomes()) == (3, {"tag/A-1": "unknown"})
    assert project.apply().code == 0
    assert project.plan().changes == ()


def test_a_login_page_is_reported_as_such(project: Project, service: Service) -> None:
    """An HTML answer with status 200 is no success, and its text is not shown."""
    project.wants(tags=[tag("A-1")])
    body = "<html><body>Bad gateway, says nobody in particular</body></html>"
    for operation in ("upsertTags", "teamInfo"):
        service.fault(operation, status=200, body=body, headers={"Content-Type": "text/html; charset=utf-8"})
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
