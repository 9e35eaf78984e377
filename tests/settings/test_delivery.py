"""The sections `postedTime`, `sources` and `serve` of the project file, and what environments override in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncengine.project.delivery_schema import Mode, PostedTimeSection, Unmatched, Weighting
from syncengine.project.load import load_project
from syncengine.project.model import Project
from syncengine.project.references import Reference, secret_at
from syncengine.project.types import Written
from tests.manifest.loading import problems

WHOLE = """\
version: 1
sources:
  ledger: {sql: {env: LEDGER}}
  crm: {http: {url: https://crm.example.com/api/, headers: {X-Key: {env: CRM}, Accept: text/plain}, timeout: 5s}}
  plain: {http: https://plain.example.com}
postedTime:
  mode: webhook
  webhook:
    callbackUrl: https://me.example.com/hook
    callerKey: {file: key.txt}
    bind: "[::1]:8081"
    maxBody: 2048
  fetchLimit: 5000
  timezone: Europe/Vienna
  unmatched: accept
  refuse: [{when: not tag, message: Assign a tag.}]
  narrative: {template: n.j2, maxLength: 255, newline: "\\r\\n"}
  duration: {from: rows, weighting: always, roundUpTo: 6m}
  deliver:
    - name: ledger
      when: tag
      sql: {source: ledger, statement: "CALL x(:a, :b, :c, :d)", params: {a: "{{ x }}", b: 1, c: 007, d: null}}
      refuseOn: [409, 503]
    - {name: file, jsonl: {path: out.jsonl, json: {a: [true, 1.5, yes, "2"]}}}
  keep: 30d
serve: {every: 90s, listen: "0.0.0.0:80"}
environments:
  test: {postedTime: {mode: fetch, webhook: {bind: "127.0.0.1:1"}}, serve: {every: 1s}, sources: {ledger: {sql: x.db}}}
"""


def project(folder: Path, env: str | None = None) -> Project:
    (folder / "syncengine.yaml").write_text(WHOLE, encoding="utf-8")
    return load_project(folder=folder, environment=env, environ={})


def posted(folder: Path, env: str | None = None) -> PostedTimeSection:
    found = project(folder, env).posted_time
    assert found is not None
    return found


def test_sources_are_urls_or_references(tmp_path: Path) -> None:
    """A URL alone is short for a source with only a URL."""
    found = project(tmp_path).sources
    assert found["ledger"].sql == Reference(env="LEDGER")
    crm, plain = found["crm"].http, found["plain"].http
    assert crm is not None
    assert plain is not None
    assert (crm.url, crm.timeout) == ("https://crm.example.com/api", 5.0)
    assert (plain.url, plain.headers) == ("https://plain.example.com", None)
    assert crm.headers == {"X-Key": Reference(env="CRM"), "Accept": Written("text/plain", 4, 88)}


def test_the_webhook_knows_its_addresses(tmp_path: Path) -> None:
    """The address may be IPv6, and the caller key is read from its file."""
    (tmp_path / "key.txt").write_text("s3cr3t\n")
    webhook = posted(tmp_path).webhook
    assert webhook is not None
    assert webhook.callback_url == "https://me.example.com/hook"
    assert (webhook.bind, webhook.max_body) == (("::1", 8081), 2048)
    assert webhook.caller_key is not None
    assert secret_at(webhook.caller_key, tmp_path, {}, "the caller key").read() == "s3cr3t"


def test_settings_of_delivery_are_converted(tmp_path: Path) -> None:
    """Durations become seconds, choices become enum members, and templates keep their line and column."""
    found = posted(tmp_path)
    assert (found.mode, found.fetch_limit, found.timezone) == (Mode.WEBHOOK, 5000, "Europe/Vienna")
    assert (found.unmatched, found.keep) == (Unmatched.ACCEPT, 30 * 86400.0)
    assert found.duration is not None
    assert (found.duration.weighting, found.duration.round_up_to) == (Weighting.ALWAYS, 360.0)
    assert found.narrative is not None
    assert found.narrative.template == Written("n.j2", 17, 25)
    assert (found.narrative.max_length, found.narrative.newline) == (255, "\r\n")
    assert found.refuse is not None
    assert found.refuse[0].when == Written("not tag", 16, 19)


def test_parameters_and_bodies_keep_their_types(tmp_path: Path) -> None:
    """Numbers, flags and null are those of JSON; `007` and `yes` are text."""
    ledger, file = posted(tmp_path).deliver or ()
    assert ledger.sql is not None
    params = ledger.sql.params or {}
    assert (params["a"].text, params["b"], params["c"].text, params["d"]) == ("{{ x }}", 1, "007", None)
    assert ledger.refuse_on == (409, 503)
    assert file.jsonl is not None
    first, second, third, fourth = file.jsonl.body["a"]
    assert (first, second, third.text, fourth.text) == (True, 1.5, "yes", "2")


def test_an_environment_overrides_the_sections(tmp_path: Path) -> None:
    """Mappings are merged deeply, but the reference of a source is replaced."""
    found = posted(tmp_path, "test")
    assert found.webhook is not None
    assert (found.mode, found.webhook.bind, found.webhook.max_body) == (Mode.FETCH, ("127.0.0.1", 1), 2048)
    there = project(tmp_path, "test")
    assert (there.serve.every, there.serve.listen, there.sources["ledger"].sql) == (1.0, ("0.0.0.0", 80), "x.db")


@pytest.mark.parametrize(
    ("bind", "listen", "is_refused"),
    [
        ("127.0.0.1:9001", "127.0.0.1:9001", True),
        ("127.0.0.1:8766", None, True),
        (None, "127.0.0.1:8080", True),
        ("0.0.0.0:9001", "127.0.0.1:9001", True),
        ("[::]:9001", "[::1]:9001", True),
        ("localhost:9001", "127.0.0.1:9001", True),
        ("127.0.0.1:9001", "127.0.0.1:9002", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
        ("127.0.0.1:9001", "127.0.0.2:9001", False),
    ],
)
def test_a_webhook_has_an_address_of_its_own(
    bind: str | None, listen: str | None, is_refused: bool, tmp_path: Path
) -> None:
    """It must differ from the address of `serve`, even if that is the default. This is checked only in webhook mode."""
    hook = "webhook: {callbackUrl: 'https://h', callerKey: {env: K}" + (f", bind: '{bind}'" if bind else "") + "}"
    serve = f"serve: {{listen: '{listen}'}}\n" if listen else ""
    for mode, wrong in (("webhook", is_refused), ("fetch", False)):
        settings = f"version: 1\npostedTime:\n  mode: {mode}\n  {hook}\n{serve}"
        found = problems(tmp_path, {"syncengine.yaml": settings, "manifests/m.yaml": ""})
        assert [(d.code, d.line, "serve.listen" in d.message) for d in found] == [("bad-value", 4, True)] * wrong
