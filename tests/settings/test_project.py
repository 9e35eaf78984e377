"""A project is loaded from its file, environment and options, whatever Git settings say; errors come all at once."""

import os
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from syncengine.errors import Diagnostic, Problems
from syncengine.project.delivery_schema import Mode, Unmatched, Weighting
from syncengine.project.git import head
from syncengine.project.git_tree import repository
from syncengine.project.load import load_project
from syncengine.project.model import Level, Limit, Ownership, Project
from syncengine.project.references import Reference
from syncengine.project.types import Written
from syncengine.resource import Removal
from tests.manifest.loading import problems
from tests.support.git import commit_all, git

OPERATIONS = ("upsertTags", "deleteTag")
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
service:
  baseUrl: https://example.com/api/
  apiKey: {env: KEY}
  team: 0815
  endpoints: {upsertTags: {path: /t/b, method: PUT, confirmed: true}}
  timeout: 1.5m
  concurrency: 4
manifests: [a, b/c.yaml]
state: db/state.db
variables: {team: patents, year: 2024}
allowEnv: [CI]
defaults: {tags: {managedBy: syncengine}}
policy:
  tagRemoval: retire
  activityTypes: exact
  maxDeletes: {tags: 10, keywords: 12.5%}
  diagnostics: {same-keyword: off}
approvals: [3@0123456789ab]
environments:
  prod:
    service: {apiKey: {file: key.txt}, concurrency: 8}
    variables: {team: prod}
    policy: {maxDeletes: {tags: 0}}
    postedTime: {mode: fetch, webhook: {bind: "127.0.0.1:1"}}
    serve: {every: 1s}
    sources: {ledger: {sql: x.db}}
  empty: {}
"""


def project(folder: Path, text: str | None = WHOLE, env: str | None = None, **environ: str) -> Project:
    if text is not None:
        (folder / "syncengine.yaml").write_text(text, encoding="utf-8")
    return load_project(folder=folder, environment=env, environ=environ, operations=OPERATIONS, lints=["same-keyword"])


def refusal(folder: Path, text: str | None, env: str | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(Problems) as refused:
        project(folder, text, env)
    return refused.value.found


POSTED_TIME: dict[str, object] = {
    "mode": Mode.WEBHOOK,
    "webhook.callback_url": "https://me.example.com/hook",
    "webhook.bind": ("::1", 8081),
    "webhook.max_body": 2048,
    "webhook.caller_key": Reference(file="key.txt"),
    "fetch_limit": 5000,
    "timezone": "Europe/Vienna",
    "unmatched": Unmatched.ACCEPT,
    "duration.weighting": Weighting.ALWAYS,
    "duration.round_up_to": 360.0,
    "narrative.template": Written("n.j2", 17, 25),
    "narrative.max_length": 255,
    "narrative.newline": "\r\n",
    "keep": 30 * 86400.0,
}


def test_every_setting_is_loaded(tmp_path: Path) -> None:
    """Paths become absolute, durations become seconds, and limits become objects."""
    p = project(tmp_path)
    expected: dict[str, object] = {
        "service.base_url": "https://example.com/api",
        "service.team": "0815",
        "service.timeout": 90.0,
        "service.concurrency": 4,
        "manifests": (tmp_path / "a", tmp_path / "b/c.yaml"),
        "state": str(tmp_path / "db/state.db"),
        "variables": {"team": "patents", "year": "2024"},
        "allow_env": ("CI",),
        "approvals": ("3@0123456789ab",),
        "policy.tag_removal": Removal.RETIRE,
        "policy.activity_types": Ownership.EXACT,
        "policy.max_deletes.tags": Limit(count=10),
        "policy.max_deletes.keywords": Limit(percent=12.5),
        "policy.max_deletes.fields": Limit(percent=50),
        "policy.diagnostics": {"same-keyword": Level.OFF},
        "serve.every": 90.0,
        "serve.listen": ("0.0.0.0", 80),
        **{f"posted_time.{name}": value for name, value in POSTED_TIME.items()},
        "is_sandbox": False,
    }
    assert {name: attrgetter(name)(p) for name in expected} == expected
    assert (p.service.endpoints["upsertTags"].path, p.service.endpoints["upsertTags"].method) == ("/t/b", "PUT")


def test_without_a_project_file_the_defaults_hold(tmp_path: Path) -> None:
    p = project(tmp_path, None)
    assert (p.config, p.manifests, p.posted_time, p.sources) == (None, (tmp_path / "manifests",), None, {})
    assert p.state == str(tmp_path / ".syncengine/state.db")
    assert (p.service.base_url, p.service.timeout, p.service.concurrency) == (None, 30.0, 8)
    assert (p.policy.max_deletes.tags, p.serve.every, p.serve.listen) == (Limit(percent=25), 300.0, ("127.0.0.1", 8766))


def test_an_environment_overrides_the_top_level(tmp_path: Path) -> None:
    """Mappings are merged deeply, but a reference replaces a reference, so that none has both `env` and `file`.

    `SYNCENGINE_ENV` names it, and `--env` overrides the variable.
    """
    (tmp_path / "key.txt").write_text("from-file\n")
    p: Any = project(tmp_path, env="prod")
    assert (p.environment, p.service.concurrency, p.service.base_url) == ("prod", 8, "https://example.com/api")
    assert p.variables == {"team": "prod", "year": "2024"}
    assert (p.policy.max_deletes.tags, p.policy.max_deletes.keywords) == (Limit(count=0), Limit(percent=12.5))
    assert p.api_key() == "from-file"
    webhook = p.posted_time.webhook
    assert (p.posted_time.mode, webhook.bind, webhook.max_body) == (Mode.FETCH, ("127.0.0.1", 1), 2048)
    assert (p.serve.every, p.serve.listen, p.sources["ledger"].sql) == (1.0, ("0.0.0.0", 80), "x.db")
    assert project(tmp_path, SYNCENGINE_ENV="prod").environment == "prod"
    assert project(tmp_path, env="empty", SYNCENGINE_ENV="prod").service.concurrency == 4


def test_what_is_unknown_is_refused_with_what_is_known(tmp_path: Path) -> None:
    """An environment, even without a project file, and the operation of an endpoint, which would have no effect."""
    assert "prod, empty" in refusal(tmp_path, WHOLE, "production")[0].message
    assert refusal(tmp_path / "..", None, "x")[0].code == "unknown-environment"
    (found,) = refusal(tmp_path, "version: 1\nservice: {endpoints: {upsertTag: {path: /x}}}\n")
    assert "`upsertTags`" in found.message


def test_variables_of_the_environment_override_the_file(tmp_path: Path) -> None:
    """They set the base URL, the key and the state, and add approvals. `--var` replaces or adds single `variables`."""
    environ = {
        "SYNCENGINE_BASE_URL": "https://other.example/",
        "SYNCENGINE_API_KEY": "k",
        "SYNCENGINE_STATE": "postgresql://u:p@h/db",
        "SYNCENGINE_APPROVE_DELETES": "1@ffffffffffff, 2@000000000000",
    }
    (tmp_path / "syncengine.yaml").write_text(WHOLE)
    p = load_project(folder=tmp_path, environ=environ, variables={"team": "mine", "x": "y"})
    assert (p.service.base_url, p.api_key(), p.state) == ("https://other.example", "k", "postgresql://u:p@h/db")
    assert p.approvals == ("3@0123456789ab", "1@ffffffffffff", "2@000000000000")
    assert p.variables == {"team": "mine", "year": "2024", "x": "y"}


SANDBOXES: dict[str, tuple[str, bool, Mapping[str, str]]] = {
    "by the file": ("version: 1\nservice: {baseUrl: sandbox}\nstate: x.db\n", False, {}),
    "by the option": (WHOLE, True, {"SYNCENGINE_STATE": "x.db"}),
    "by a variable": (WHOLE, False, {"SYNCENGINE_BASE_URL": "sandbox"}),
}


@pytest.mark.parametrize(("text", "option", "environ"), SANDBOXES.values(), ids=SANDBOXES.keys())
def test_the_sandbox_keeps_its_own_state(text: str, option: bool, environ: Mapping[str, str], tmp_path: Path) -> None:
    """The project's state is not used, whether the file, an option or a variable chooses the sandbox."""
    (tmp_path / "syncengine.yaml").write_text(text)
    p = load_project(folder=tmp_path, environ=environ, sandbox=option)
    assert p.is_sandbox
    assert p.state == str(tmp_path / ".syncengine/sandbox/state.db")
    assert p.sandbox_data == tmp_path / ".syncengine/sandbox/service.db"
    assert (p.base_url(), p.api_key()) == ("sandbox", "sandbox")


def test_the_root_is_the_folder_of_the_project_file(tmp_path: Path) -> None:
    """`--config` may name a file in another folder and with another name, which must exist."""
    (tmp_path / "sub").mkdir()
    config = tmp_path / "sub/other.yaml"
    with pytest.raises(Problems) as refused:
        load_project(folder=tmp_path, config=config, environ={})
    assert refused.value.found[0].code == "unreadable-file"
    config.write_text("version: 1\nmanifests: [x]\n")
    p = load_project(folder=tmp_path, config=config, environ={})
    assert (p.root, p.manifests) == (tmp_path / "sub", (tmp_path / "sub/x",))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("a/b.db", "{root}/a/b.db"),
        ("/abs/b.db", "/abs/b.db"),
        ("sqlite:///a/b.db", "sqlite:///{root}/a/b.db"),
        ("sqlite:////abs/b.db", "sqlite:////abs/b.db"),
        ("postgresql+psycopg://host/db", "postgresql+psycopg://host/db"),
        ("postgresql://user@host:5432/db", "postgresql://user@host:5432/db"),
    ],
)
def test_relative_state_is_relative_to_the_project(state: str, expected: str, tmp_path: Path) -> None:
    """The current folder does not matter. URLs of servers are not changed."""
    assert project(tmp_path, f"version: 1\nstate: {state}\n").state == expected.format(root=tmp_path)


BAD: dict[str, tuple[str, str]] = {
    "no version": ("manifests: [a]\n", "missing-field 1:1"),
    "empty": ("", "missing-field 1:1"),
    "another version": ("version: 2\n", "bad-value 1:10"),
    "a quoted version": ('version: "1"\n', "wrong-type 1:10"),
    "unknown key": ("version: 1\nmanifest: [a]\n", "unknown-field 2:1"),
    "unknown service key": ("version: 1\nservice: {baseURL: x}\n", "unknown-field 2:11"),
    "unknown operation": ("version: 1\nservice: {endpoints: {upsertTag: {}}}\n", "unknown-operation 2:23"),
    "unknown warning": ("version: 1\npolicy: {diagnostics: {same-keywords: off}}\n", "unknown-warning 2:24"),
    "unknown kind": ("version: 1\npolicy: {maxDeletes: {categories: 3}}\n", "unknown-field 2:23"),
    "no flag": ("version: 1\nservice: {endpoints: {deleteTag: {confirmed: x}}}\n", "wrong-type 2:46"),
    "no scheme": ("version: 1\nservice: {baseUrl: example.com}\n", "bad-value 2:20"),
    "another scheme": ("version: 1\nservice: {baseUrl: 'ftp://example.com'}\n", "bad-value 2:20"),
    "a query": ("version: 1\nservice: {baseUrl: 'https://example.com/?x=y'}\n", "bad-value 2:20"),
    "a line feed at the end of the URL": ('version: 1\nservice: {baseUrl: "https://e.com\\n"}\n', "bad-value 2:20"),
    "no unit": ("version: 1\nservice: {timeout: 30}\n", "bad-value 2:20"),
    "no time": ("version: 1\nservice: {timeout: 0s}\n", "bad-value 2:20"),
    "too many at once": ("version: 1\nservice: {concurrency: 65}\n", "bad-value 2:24"),
    "more than all": ("version: 1\npolicy: {maxDeletes: {tags: 101%}}\n", "bad-value 2:29"),
    "less than none": ("version: 1\npolicy: {maxDeletes: {tags: -1}}\n", "bad-value 2:29"),
    "no port": ("version: 1\nserve: {listen: '127.0.0.1:65536'}\n", "bad-value 2:17"),
    "a secret for templates": ("version: 1\nallowEnv: [my_api_key]\n", "secret-allowed 2:12"),
    "an exception that does not say so": ("version: 1\nallowEnv: [{name: A_KEY}]\n", "missing-field 2:13"),
    "an exception that is none": ("version: 1\nallowEnv: [{name: A_KEY, notSecret: false}]\n", "bad-value 2:37"),
    "an exception of no name": ("version: 1\nallowEnv: [{name: [A], notSecret: true}]\n", "wrong-type 2:19"),
    "an exception with more": ("version: 1\nallowEnv: [{name: K, notSecret: true, why: x}]\n", "unknown-field 2:39"),
    "a list in `allowEnv`": ("version: 1\nallowEnv: [[A]]\n", "wrong-type 2:12"),
    "no approval": ("version: 1\napprovals: [yes]\n", "bad-value 2:13"),
    "a link that runs": ("version: 1\nlinks: {blob: 'javascript:{file}'}\n", "bad-value 2:15"),
    "a link to no file": ("version: 1\nlinks: {blob: 'https://example.com/{line}'}\n", "bad-value 2:15"),
    "a link with a password": ("version: 1\nlinks: {blob: 'https://a:b@h/{file}'}\n", "bad-value 2:15"),
    "not a policy": ("version: 1\npolicy: {activityTypes: Exact}\n", "bad-value 2:25"),
    "null": ("version: 1\nstate:\n", "null-value 2:7"),
    "two ends": ("version: 1\nservice: {apiKey: {env: A, file: b}}\n", "bad-value 2:20"),
    "not a name": ("version: 1\nservice: {apiKey: {env: 'a b'}}\n", "bad-value 2:25"),
    "nested environment": ("version: 1\nenvironments: {a: {environments: {}}}\n", "unknown-field 2:20"),
    "bad environment": ("version: 1\nenvironments:\n  a: {service: {timeout: x}}\n", "bad-value 3:26"),
    "environment without a mapping": ("version: 1\nenvironments: {a: b}\n", "wrong-type 2:19"),
    "two documents": ("version: 1\n---\nversion: 1\n", "wrong-type 3:1"),
    "a list": ("- a\n", "wrong-type 1:1"),
    "several": ("service: {timeout: x}\nstat: y\n", "missing-field 1:1, bad-value 1:20, unknown-field 2:1"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD.keys())
def test_a_bad_project_file_is_refused_at_the_right_place(text: str, expected: str, tmp_path: Path) -> None:
    assert ", ".join(f"{d.code} {d.line}:{d.column}" for d in refusal(tmp_path, text)) == expected


def test_a_key_sent_in_clear_text_gives_a_warning(tmp_path: Path) -> None:
    """An http:// URL is allowed without a warning only for this machine."""
    warned = project(tmp_path, "version: 1\nservice: {baseUrl: 'http://example.com'}\n").warnings
    assert [d.code for d in warned] == ["insecure-url"]
    for host in ("localhost:1", "127.0.0.1:8080", "[::1]"):
        assert project(tmp_path, f"version: 1\nservice: {{baseUrl: 'http://{host}'}}\n").warnings == ()


def test_sources_parameters_and_bodies_keep_their_types(tmp_path: Path) -> None:
    """Numbers, flags and null of parameters and bodies are those of JSON; `007` and `yes` are text.

    A URL alone is short for a source with only a URL. Texts that are templates keep their line and column.
    """
    found: Any = project(tmp_path)
    assert found.posted_time.refuse[0].when == Written("not tag", 16, 19)
    ledger, file = found.posted_time.deliver
    params, body = ledger.sql.params, file.jsonl.body["a"]
    assert (params["a"].text, params["b"], params["c"].text, params["d"]) == ("{{ x }}", 1, "007", None)
    assert (body[:2], body[2].text, body[3].text, ledger.refuse_on) == ((True, 1.5), "yes", "2", (409, 503))
    crm, plain = found.sources["crm"].http, found.sources["plain"].http
    assert (crm.url, crm.timeout) == ("https://crm.example.com/api", 5.0)
    assert crm.headers == {"X-Key": Reference(env="CRM"), "Accept": Written("text/plain", 4, 88)}
    assert (plain.url, plain.headers) == ("https://plain.example.com", None)
    assert found.sources["ledger"].sql == Reference(env="LEDGER")


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


# --- variables and user settings of Git


def committed(folder: Path, text: str) -> str:
    folder.mkdir()
    (folder / "file").write_text(text)
    git(folder, "init", "-q")
    return commit_all(folder)


def state_of(folder: Path) -> tuple[str, bool] | None:
    """The commit that is checked out, and whether nothing is changed."""
    found = head(folder)
    return found and (found.id, found.clean)


@pytest.mark.parametrize("relative", [True, False])
def test_a_project_has_the_commit_of_its_own_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, relative: bool
) -> None:
    """`GIT_DIR` of another repository is ignored, as in a hook that runs the program."""
    commit = committed(tmp_path / "project", "ours")
    committed(tmp_path / "deployed", "theirs")
    monkeypatch.setenv("GIT_DIR", "." if relative else str(tmp_path / "deployed" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "deployed" / ".git" / "index"))
    assert state_of(tmp_path / "project") == (commit, True)
    with repository(tmp_path / "project") as repo:
        assert repo.commit("HEAD") == commit


def test_git_dir_is_used_for_a_folder_without_its_own_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repository may be kept elsewhere on purpose."""
    commit = committed(tmp_path / "project", "ours")
    (tmp_path / "project" / ".git").rename(tmp_path / "kept.git")
    assert state_of(tmp_path / "project") is None
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "kept.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "project"))
    assert state_of(tmp_path / "project") == (commit, True)


def test_a_new_file_and_a_pipe_in_place_of_one_are_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`showUntrackedFiles = no` in the user's Git settings is ignored, and no pipe is read, as that would block."""
    commit = committed(tmp_path / "project", "ours")
    (tmp_path / "gitconfig").write_text("[status]\n showUntrackedFiles = no\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    new, file = tmp_path / "project" / "new", tmp_path / "project" / "file"
    new.touch()
    assert state_of(tmp_path / "project") == (commit, False)
    new.unlink()
    file.unlink()
    os.mkfifo(file)
    assert state_of(tmp_path / "project") == (commit, False)


def test_what_git_cannot_add_has_no_part_in_a_merge(tmp_path: Path) -> None:
    """A pipe, and another repository in the folder, are left as they are, and everything else is merged."""
    folder = tmp_path / "project"
    committed(folder, "ours")
    git(folder, "checkout", "-qb", "other")
    commit_all(folder)
    git(folder, "checkout", "-q", "-")
    os.mkfifo(folder / "pipe")
    committed(folder / "inner", "theirs")
    with repository(folder) as repo:
        tree, found = repo.merged(repo.commit("other"), "other")
        assert (repo.text("ls-tree", "--name-only", tree), found) == ("file\n", [])
