"""`publish` maintains exactly one comment of its own in a pull request, despite failures of hosts and parallel jobs."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from syncengine.publish.api import asked_wait
from tests.cli.program import Ended, Project, tag
from tests.publish.hosts import BOT, PERSON, TOKEN, Imitation, Trouble
from tests.support.git import git

pytestmark = pytest.mark.slow

MARKER = "<!-- syncengine:default "


def publish(project: Project, host: Imitation, *words: str, run: int = 1, **environ: str) -> Ended:
    done = project.run("publish", "plan.json", "--to", host.kind, *words, environ=host.environ(run, **environ))
    assert TOKEN not in done.out + done.err
    return done


def test_a_comment_is_created_and_then_updated(project: Project, host: Imitation) -> None:
    """All runs share one comment, which begins with a hidden marker that names the commit and the run."""
    first = publish(project, host)
    assert (first.code, first.out.split(":")[0]) == (0, "Created"), first.err
    (id,) = host.comments
    (body,) = host.bodies()
    assert body.startswith(f"{MARKER}head={1:040x} run=1 id=9001 ")
    assert "### Plan: 2 to create" in body
    second = publish(project, host, run=2)
    assert (second.code, second.out.split(":")[0]) == (0, "Updated")
    assert list(host.comments) == [id]
    assert host.bodies()[0].startswith(f"{MARKER}head={2:040x} run=2 ")


def test_a_comment_of_a_person_is_never_overwritten(project: Project, host: Imitation) -> None:
    """A person's comment is never overwritten, even with our marker, nor is one of ours that only quotes it."""
    publish(project, host)
    (body,) = host.bodies()
    host.comments.clear()
    host.add(body, PERSON)
    host.add(f"> {body}", PERSON)
    host.add(f"I said:\n{body}", BOT)
    before = {id: dict(comment) for id, comment in host.comments.items()}
    done = publish(project, host, run=2)
    assert (done.code, done.out.split(":")[0]) == (0, "Created")
    assert {id: host.comments[id] for id in before} == before
    assert len(host.comments) == len(before) + 1


def test_an_older_run_that_comes_later_writes_nothing(project: Project, host: Imitation) -> None:
    """An older run, or a repeat of it, does not overwrite the comment of a newer one."""
    publish(project, host, run=5)
    (body,) = host.bodies()
    done = publish(project, host, run=4, GITHUB_RUN_ATTEMPT="3", CI_JOB_ID="99999")
    assert (done.code, "run 5 is newer" in done.err) == (0, True)
    assert host.bodies() == [body]


def test_each_key_has_a_comment_of_its_own(project: Project, host: Imitation) -> None:
    """Each --key has its own comment; by default the key is the name of the environment."""
    for key in ("prod", "prod-eu"):
        assert publish(project, host, "--key", key).code == 0
    assert publish(project, host, SYNCENGINE_ENV="prod", run=2).out.startswith("Updated")
    assert len(host.bodies()) == 2


@pytest.mark.parametrize("key", ["a b", "-->", "a--b", "x\ny"])
def test_a_key_that_would_break_the_marker_is_a_usage_error(project: Project, host: Imitation, key: str) -> None:
    assert publish(project, host, "--key", key).code == 64


def test_comments_are_found_on_any_page(project: Project, host: Imitation) -> None:
    host.page = 2
    for n in range(5):
        host.add(f"looks good {n}", PERSON)
    publish(project, host)
    for n in range(5):
        host.add(f"still good {n}", PERSON)
    done = publish(project, host, run=2)
    assert (done.code, done.out.split(":")[0]) == (0, "Updated")
    assert len(host.bodies()) == 1


def test_a_next_page_on_another_host_gets_no_token(project: Project, host: Imitation) -> None:
    """A link to the next page on another host is refused, so that the token is not sent there."""
    host.page, host.next_host = 1, "http://127.0.0.1:9"
    host.add("one", PERSON)
    host.add("two", PERSON)
    done = publish(project, host)
    assert (done.code, "another host" in done.err) == (1, True)


def test_with_a_token_that_only_reads_the_text_is_in_the_summary(project: Project, host: Imitation) -> None:
    """With a token that may only read, `publish` exits with 0 and writes to the job's summary, or to its output."""
    host.reads_only = True
    summary = project.folder / "summary"
    done = publish(project, host, GITHUB_STEP_SUMMARY=str(summary))
    assert (done.code, "may not write" in done.err) == (0, True)
    assert "### Plan: 2 to create" in summary.read_text()
    assert host.comments == {}
    without = publish(project, host)
    assert (without.code, "### Plan: 2 to create" in without.out) == (0, True)


def test_a_forks_job_without_a_token_ends_well(project: Project, host: Imitation, tmp_path: Path) -> None:
    """Without a token, a fork's job exits with 0; any other job fails with the missing variable's name."""
    event = tmp_path / "event.json"
    sides = {"head": {"repo": {"full_name": "stranger/tags"}}, "base": {"repo": {"full_name": "acme/tags"}}}
    event.write_text(json.dumps({"pull_request": {"number": 12, **sides}}))
    none = {"GITHUB_TOKEN": "", "GITLAB_TOKEN": ""}
    fork = {"GITHUB_EVENT_PATH": str(event), "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8"}
    assert publish(project, host, **none, **fork).code == 0
    done = publish(project, host, **none)
    assert (done.code, "is not set: pass it to this step" in done.err) == (1, True)
    assert host.requests == []


def test_a_missing_pull_request_is_explained(project: Project, host: Imitation) -> None:
    """The message for 404 says that the repository may be missing or not readable with the token."""
    done = publish(project, host, GITHUB_REPOSITORY="acme/other", CI_PROJECT_ID="78")
    assert done.code == 1
    request = {"github": "pull request", "gitlab": "merge request"}[host.kind]
    assert f"and the {request} exist, and that the token may read them" in done.err


def test_a_token_that_is_not_accepted_is_not_shown(project: Project, host: Imitation) -> None:
    """A rejected token exits with 7 and is not shown, even if the host repeats it; a malformed one exits with 64."""
    name = "GITHUB_TOKEN" if host.kind == "github" else "GITLAB_TOKEN"
    done = publish(project, host, **{name: "expired-secret"})
    assert done.code == 7
    assert "expired-secret" not in done.out + done.err
    assert publish(project, host, **{name: "two words"}).code == 64


LATER = {"retry-after": "0"}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("status", [429, 502])
def test_temporary_errors_are_retried(project: Project, host: Imitation, status: int, method: str) -> None:
    """Rate limits and server errors are retried after the time that the host asks for."""
    host.troubles = [Trouble(status, method, 2, LATER)]
    done = publish(project, host)
    assert (done.code, len(host.bodies())) == (0, 1), done.err


LIMITS = {
    "a spent quota": (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1030"}, "API rate limit exceeded", 30),
    "a spent quota of GitLab": (429, {"ratelimit-remaining": "0", "ratelimit-reset": "1030"}, "Retry later", 30),
    "a secondary limit": (403, {}, "You have exceeded a secondary rate limit. Please wait a few minutes", 60),
    "the same with a quota left": (403, {"x-ratelimit-remaining": "9", "x-ratelimit-reset": "1030"}, "rate limit", 60),
    "its former name": (403, {}, "You have triggered an abuse detection mechanism.", 60),
    "as the header says": (403, {"retry-after": "7"}, "You have exceeded a secondary rate limit.", 7),
    "no right": (403, {"x-ratelimit-remaining": "9"}, "Resource not accessible by integration", None),
    "a comment too soon": (422, {}, "Validation Failed: body was submitted too quickly", 15),
    "a comment too long": (422, {}, "Validation Failed: body is too long", None),
    "a failure": (502, {}, "no message", None),
}


@pytest.mark.parametrize(("status", "headers", "words", "seconds"), LIMITS.values(), ids=LIMITS)
def test_each_limit_has_its_wait(status: int, headers: dict[str, str], words: str, seconds: float | None) -> None:
    """Each limit is waited for as its headers say, or for GitHub's documented minute; permanent errors are not."""
    assert asked_wait(status, headers, words, now=1000) == seconds


def test_the_message_of_the_host_is_shown_whole(project: Project, host: Imitation) -> None:
    """The error shows the host's message and all of its details."""
    why = {"message": "Validation Failed", "errors": [{"field": "body", "message": "no emoji, please"}, "and no joy"]}
    host.knows_user, host.troubles = True, [Trouble(422, "POST", 1, LATER, json.dumps(why).encode())]
    done = publish(project, host)
    assert (done.code, "Validation Failed: no emoji, please: and no joy" in done.err) == (1, True), done.err


def test_persistent_errors_end_after_a_limited_number_of_attempts(project: Project, host: Imitation) -> None:
    host.troubles = [Trouble(503, "", 1000, LATER)]
    done = publish(project, host)
    assert done.code == 9
    assert "503" in done.err
    assert len(host.requests) <= 12


def test_a_requested_wait_that_is_too_long_ends_at_once(project: Project, host: Imitation) -> None:
    """A requested wait that is too long ends at once with exit code 9 and the number of seconds."""
    host.troubles = [Trouble(429, "", 1000, {"retry-after": "3600"})]
    done = publish(project, host)
    assert (done.code, "3600 s" in done.err) == (9, True)


@pytest.mark.parametrize("executed", [True, False])
def test_a_write_with_unknown_outcome_is_told_as_what_it_did(project: Project, host: Imitation, executed: bool) -> None:
    """After a write whose answer was lost there is one comment, and its word is that of the write."""
    for run, word in ((1, "Created"), (2, "Updated")):
        host.troubles = [
            Trouble(502, method, 1, LATER, b"<html>bad gateway", executed=executed)
            for method in ("POST", "PATCH", "PUT")
        ]
        done = publish(project, host, run=run)
        assert (done.code, len(host.bodies()), done.out.split(":")[0]) == (0, 1, word), done.err


def test_an_unreachable_host_exits_with_9(project: Project, host: Imitation) -> None:
    gone = {"GITHUB_API_URL": "http://127.0.0.1:9", "CI_API_V4_URL": "http://127.0.0.1:9"}
    done = publish(project, host, **gone)
    assert (done.code, "nothing is listening at the address" in done.err) == (9, True), done.err


@pytest.mark.parametrize(
    ("variables", "code", "words"),
    [
        ({"ALL_PROXY": "socks4://me:s3cret@127.0.0.1:9"}, 64, "ALL_PROXY names a kind of proxy that is not supported"),
        ({"ALL_PROXY": "socks4://127.0.0.1:9", "NO_PROXY": "[::1],127.0.0.0/8"}, 0, "Created"),
        ({"HTTP_PROXY": "http://me:s3cret@127.0.0.1:9"}, 9, "the proxy 127.0.0.1:9 (HTTP_PROXY) cannot be reached"),
    ],
)
def test_proxy_variables_are_honoured(
    project: Project, host: Imitation, variables: dict[str, str], code: int, words: str
) -> None:
    """An unsupported kind of proxy exits with 64, an unreachable one with 9; the password is not shown."""
    done = publish(project, host, **variables)
    assert (done.code, words in done.out + done.err) == (code, True), done.err
    assert "s3cret" not in done.out + done.err


def test_a_token_whose_user_is_unknown_updates_its_comment(project: Project, host: Imitation) -> None:
    host.author = PERSON
    for run in (1, 2):
        assert publish(project, host, run=run).code == 0
    (body,) = host.bodies(PERSON)
    assert " run=2 " in body


def test_duplicates_of_a_race_become_one(project: Project, host: Imitation) -> None:
    """Of several own comments, only that of the newest run is kept."""
    publish(project, host, run=3)
    (body,) = host.bodies()
    for run in (5, 4):
        host.add(body.replace("run=3 id=9003", f"run={run} id={9000 + run}"), BOT)
    done = publish(project, host, run=4)
    assert (done.code, "run 5 is newer" in done.err) == (0, True)
    (left,) = host.bodies()
    assert " run=5 " in left


@pytest.mark.parametrize(("runs", "there"), [((7, 8), False), ((8, 7), True), ((7, 7), False)])
def test_two_jobs_at_once_end_with_one_comment(
    project: Project, host: Imitation, runs: tuple[int, int], there: bool
) -> None:
    """Two parallel processes against a slow host leave one comment, with the text of the newest run."""
    if there:
        publish(project, host, run=6)
    host.hold = {"GET": 0.05, "POST": 0.2, "PATCH": 0.2, "PUT": 0.2}

    def job(number: int, run: int) -> Ended:
        attempt = {"GITHUB_RUN_ATTEMPT": "1", "CI_JOB_ID": str(100 * run)}
        environ = host.environ(run, GITHUB_SHA=f"{number:040x}", CI_COMMIT_SHA=f"{number:040x}", **attempt)
        return project.run("publish", "plan.json", "--to", host.kind, environ=environ)

    with ThreadPoolExecutor(len(runs)) as jobs:
        for done in jobs.map(job, (1, 2), runs):
            assert done.code == 0, done.err
    (body,) = host.bodies()
    assert f" run={max(runs)} " in body


def test_what_an_older_run_writes_over_the_newest_is_replaced(project: Project, host: Imitation) -> None:
    """It had looked before the newer one wrote, which therefore looks once more."""
    publish(project, host, run=3)
    ((id, comment),) = host.comments.items()

    def write_late() -> None:
        while host.counts()["PATCH"] + host.counts()["PUT"] == 0 or host.requests[-1][0] != "GET":
            time.sleep(0.01)
        time.sleep(0.1)
        host.comments[id] = older

    older = dict(comment)
    with ThreadPoolExecutor(1) as late:
        writing = late.submit(write_late)
        assert publish(project, host, run=4).code == 0
        writing.result(60)
    assert " run=4 " in host.bodies()[0]


# --- what is published


def test_outputs_are_handed_to_later_steps_and_jobs(project: Project, host: Imitation) -> None:
    """Outputs are appended to GitHub's output file and written to the --dotenv file."""
    file = project.folder / "outputs"
    file.write_text("other=1\n")
    done = publish(project, host, "--dotenv", str(project.folder / "plan.env"), GITHUB_OUTPUT=str(file))
    assert done.code == 0, done.err
    id = json.loads((project.folder / "plan.json").read_text())["id"]
    expected = f"has_changes=true\ncreate=2\nupdate=0\nremove=0\ngate=false\nplan_id={id}\n"
    assert file.read_text() == f"other=1\n{expected}"
    assert (project.folder / "plan.env").read_text() == expected


def test_a_closed_gate_is_an_output(project: Project, host: Imitation) -> None:
    """A closed gate is an output, and the comment shows its approval."""
    assert project.run("apply", "-y").code == 0
    project.wants(tags=[tag("OTHER-1")])
    project.run("plan", "--report", "json=plan.json")
    approve = json.loads((project.folder / "plan.json").read_text())["gate"]["approve"]
    file = project.folder / "outputs"
    assert publish(project, host, GITHUB_OUTPUT=str(file)).code == 0
    values = dict(line.split("=") for line in file.read_text().splitlines())
    assert (values["gate"], values["remove"]) == ("true", "2")
    assert approve in host.bodies()[0]


def test_a_saved_plan_is_published_with_the_approvals_of_the_project(project: Project, host: Imitation) -> None:
    """The comment of a saved plan shows which of its removals the project file approves."""
    assert project.run("apply", "-y").code == 0
    project.wants(tags=[tag("OTHER-1")])
    plan = project.run("plan", "--out", "plan.json", "--format", "json").document
    project.settings("approvals:", f"  - {plan['gate']['approve']}")
    assert publish(project, host).code == 0
    assert "Approved: syncengine.yaml:8" in host.bodies()[0]


def test_a_report_is_published(project: Project, host: Imitation) -> None:
    """The report of an apply is posted to the pull request that brought its commit."""
    done = project.run("apply", "-y", "--format", "json")
    (project.folder / "plan.json").write_text(done.out)
    host.pulls = {"*": [12]}
    file = project.folder / "outputs"
    environ = {"GITHUB_REF": "refs/heads/main", "CI_MERGE_REQUEST_IID": "", "GITHUB_OUTPUT": str(file)}
    published = publish(project, host, **environ)
    assert (published.code, "Applied 2 changes" in host.bodies()[0]) == (0, True), published.err
    assert "has_changes=true\ncreate=2\n" in file.read_text()


def test_a_push_without_a_pull_request_has_a_summary(project: Project, host: Imitation) -> None:
    """A push without a pull request exits with 0 and says so with the host's term for it."""
    done = publish(project, host, GITHUB_REF="refs/heads/main", CI_MERGE_REQUEST_IID="")
    request = {"github": "pull request", "gitlab": "merge request"}[host.kind]
    assert (done.code, f"belongs to no {request}; " in done.err) == (0, True)


def test_errors_of_planning_replace_an_earlier_plan(project: Project, host: Imitation) -> None:
    """If planning fails, the errors replace the earlier plan in the file and in the comment."""
    publish(project, host)
    (project.folder / "manifests/all.yaml").write_text("tags: [{nam: x}]\n")
    assert project.run("plan", "--report", "json=plan.json").code == 8
    file = project.folder / "outputs"
    assert publish(project, host, run=2, GITHUB_OUTPUT=str(file)).code == 0
    (body,) = host.bodies()
    assert "### No plan: " in body
    assert "to create" not in body
    assert "has_changes=false" in file.read_text()


def test_a_lone_surrogate_is_published_as_an_escape(project: Project, host: Imitation) -> None:
    file = project.folder / "plan.json"
    file.write_text(file.read_text().replace("ACME-0042", r"ACME-0042\ud83d"))
    done = publish(project, host)
    assert done.code == 0, done.err
    (body,) = host.bodies()
    assert r"ACME-0042\ud83d" in body


BROKEN = {
    "nothing": (b"", "is empty"),
    "blanks": (b" \n", "is empty"),
    "half": (b'{"format": "syncengine.plan/v1", "id": "x', "is not JSON"),
    "no JSON": (b"Plan: 2 to create", "is not JSON"),
    "bytes": (b'{"format": "\xff"}', "is not JSON"),
    "a list": (b"[]", "is damaged"),
    "no format": (b"{}", "is neither a plan nor a report"),
    "another format": (b'{"format": "syncengine.plan/v9"}', "is neither a plan nor a report"),
    "no fields": (b'{"format": "syncengine.plan/v1"}', "is damaged"),
    "deep": (b'{"format": "syncengine.plan/v1", "x": ' + b"[" * 100_000, "is not JSON"),
}


@pytest.mark.parametrize("host", ["github"], indirect=True)
@pytest.mark.parametrize(("content", "words"), BROKEN.values(), ids=BROKEN)
def test_a_damaged_file_is_refused(project: Project, host: Imitation, content: bytes, words: str) -> None:
    (project.folder / "plan.json").write_bytes(content)
    done = publish(project, host)
    assert (done.code, f"plan.json {words}" in done.err) == (1, True), done.err
    assert host.requests == []


FORGED = {
    "id": ("id", "x\ninjected=1"),
    "a negative count": ("summary.create", "x"),
    "an action": ("changes.0.action", "explode"),
    "an address": ("changes.0.address", "tag"),
    "a line": ("changes.0.source.line", 0),
    "a value": ("changes.0.fields.0.after", {"a": 1}),
    "an effect": ("changes.0.fields.0.effect", "sometimes"),
    "a severity": ("diagnostics", [{"severity": "fatal", "code": "x", "message": "x", "file": None, "line": None,
                                   "column": None, "address": None}]),
}  # fmt: skip


@pytest.mark.parametrize("host", ["github"], indirect=True)
@pytest.mark.parametrize(("path", "value"), FORGED.values(), ids=FORGED)
def test_a_forged_value_is_refused(project: Project, host: Imitation, path: str, value: object) -> None:
    """A plan with a value that no plan can have is refused and writes no outputs."""
    document = json.loads((project.folder / "plan.json").read_text())
    *parents, last = path.split(".")
    part = document
    for name in parents:
        part = part[int(name) if name.isdigit() else name]
    part[last] = value
    (project.folder / "plan.json").write_text(json.dumps(document))
    file = project.folder / "outputs"
    done = publish(project, host, GITHUB_OUTPUT=str(file))
    assert (done.code, "plan.json is damaged" in done.err) == (1, True), (done.out, done.err)
    assert not file.exists()


def test_a_file_that_is_not_there_is_named(project: Project, host: Imitation) -> None:
    """A missing file is a usage error, as with all commands that read a file."""
    (project.folder / "plan.json").unlink()
    done = publish(project, host)
    assert (done.code, "plan.json: no such file or folder" in done.err) == (64, True), done.err


def test_a_dry_run_prints_the_comment_and_sends_nothing(project: Project, host: Imitation) -> None:
    """--dry-run prints the comment, sends nothing, and needs no token and no CI job."""
    done = publish(project, host, "--dry-run")
    assert done.out.startswith(MARKER)
    bare = project.run("publish", "plan.json", "--to", host.kind, "--dry-run")
    assert (bare.code, "### Plan: 2 to create" in bare.out) == (0, True), bare.err
    assert host.requests == []
    document = publish(project, host, "--dry-run", "--format", "json").document
    assert (document["outcome"], document["text"]) == ("dry-run", done.out)


def test_missing_variables_outside_a_job_are_named(project: Project, host: Imitation) -> None:
    """Outside a CI job, all missing variables are named, and --dry-run as the alternative."""
    done = project.run("publish", "plan.json", "--to", host.kind)
    assert done.code == 64
    assert "are not set" in done.err
    assert "--dry-run" in done.err


def test_5000_different_changes_fit(project: Project, host: Imitation) -> None:
    """A comment on 5,000 changes fits the host's limit, has the approval of the gate and a link to the job."""
    lost = [tag(f"LOST-{n}") for n in range(30)]
    project.wants(tags=[tag("STAYS-1"), *lost])
    assert project.run("apply", "-y").code == 0
    words = "🏛" * 40  # one character, two units of UTF-16, four bytes
    made = [tag(f"NEW-{n}", description=f"{n} {words} {n * n}", metadata={f"m{n % 89}": f"{n}"}) for n in range(5000)]
    project.wants(tags=[tag("STAYS-1"), *made])
    assert project.run("plan", "-q", "--report", "json=plan.json").code == 0
    done = publish(project, host)
    assert done.code == 0, done.err
    (body,) = host.bodies()
    assert len(body) <= host.most
    approve = json.loads((project.folder / "plan.json").read_text())["gate"]["approve"]
    assert approve in body
    job = host.environ()["CI_JOB_URL"] if host.kind == "gitlab" else "https://host.example/acme/tags/actions/runs/9001"
    assert f"]({job})" in body
    assert body.count("<details>") == body.count("</details>")


def test_diagnostics_use_the_length_that_the_host_allows(project: Project, host: Imitation) -> None:
    """Comments of diagnostics use the whole length that the host allows, and are cut only beyond it."""
    place = {"file": "manifests/all.yaml", "line": 1, "column": None, "address": None}
    found = [
        {"severity": "error", "code": f"c-{n}", "message": f"No. {n}: {'words ' * 20}", **place} for n in range(2_000)
    ]
    document = {"format": "syncengine.diagnostics/v1", "diagnostics": found}
    (project.folder / "plan.json").write_text(json.dumps(document))
    assert publish(project, host).code == 0
    (body,) = host.bodies()
    shown = len(set(re.findall(r"No\. (\d+):", body)))
    assert len(body) <= host.most
    assert shown == 2_000 if host.kind == "gitlab" else 300 < shown < 2_000
    assert ("**Shortened" in body) is (host.kind == "github")


def test_lines_are_linked_as_the_project_file_says(project: Project, host: Imitation) -> None:
    """The link template of the project file is used; if the project file is invalid, the host's own is."""
    project.settings("links: {blob: 'https://code.example/acme/{commit}/{file}?at={line}'}")
    publish(project, host)
    assert f"[`manifests/all.yaml:2`](<https://code.example/acme/{1:040x}/manifests/all.yaml?at=2>)" in host.bodies()[0]
    (project.folder / "syncengine.yaml").write_text("version: [", encoding="utf-8")
    publish(project, host)
    assert "](<https://host.example/acme/tags/" in host.bodies()[0]


HOSTILE = "@team #123 !4 ~bug %1 &5 $6 <img src=x onerror=alert(1)> [x](https://evil.example) https://evil.example -->"


def test_nothing_of_a_manifest_reaches_the_comment_as_markup(project: Project, host: Imitation) -> None:
    """Names and values of manifests cannot add mentions, references, links or HTML, nor end the marker."""
    project.wants(tags=[tag(HOSTILE, description=f"` `` {HOSTILE}", keywords=[HOSTILE], metadata={HOSTILE: HOSTILE})])
    project.run("plan", "--report", "json=plan.json")
    assert publish(project, host).code == 0
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "CODE", host.bodies()[0].partition("-->")[2])
    for sign in ("@team", "#123", "!4", "~bug", "%1", "&5", "$6", "<img", "evil.example"):
        assert sign not in text, text


REFERENCES = "@team #123 GH-5 !4 ~bug %1 &5 $6 a/b#3 a/b!3 www.evil.example https://evil.example <b> ![x](y) [z](y) -->"


def test_nothing_of_a_message_reaches_the_comment_as_markup(project: Project, host: Imitation) -> None:
    """Messages that quote manifests cannot add mentions, references, links or HTML."""
    finding = {"severity": "error", "code": "x", "message": REFERENCES, "file": None, "line": None}
    document = {"format": "syncengine.diagnostics/v1", "diagnostics": [{**finding, "column": None, "address": None}]}
    (project.folder / "plan.json").write_text(json.dumps(document))
    assert publish(project, host).code == 0
    text = host.bodies()[0].partition("-->")[2].rpartition("<sub>")[0]
    for sign in REFERENCES.split():
        assert not re.search(rf"(?<!\S){re.escape(sign)}(?!\S)", text), sign


# --- files that this run did not write


def commit(project: Project, *files: str) -> str:
    """Commit the files, even if Git ignores them, and return the commit."""
    git(project.folder, "init", "-q")
    git(project.folder, "add", "-f", *files)
    git(project.folder, "commit", "-q", "--allow-empty", "-m", "x")
    return git(project.folder, "rev-parse", "HEAD")


def refused(project: Project, host: Imitation, words: str, **environ: str) -> None:
    done = publish(project, host, **environ)
    assert (done.code, words in done.err) == (1, True), done.err
    assert host.requests == []


def test_a_committed_plan_is_not_published(project: Project, host: Imitation) -> None:
    """A `plan.json` that is in Git is refused, since a branch could forge it."""
    commit(project, "manifests", "syncengine.yaml")
    assert project.run("plan", "--report", "json=plan.json").code == 0
    commit(project, "plan.json")
    refused(project, host, "plan.json is in Git")
    assert publish(project, host, "--dry-run").code == 0


def test_a_link_is_not_published(project: Project, host: Imitation) -> None:
    """A plan that is a symbolic link, or in a linked folder, is refused, since a branch could choose its target."""
    (project.folder / "plan.json").rename(project.folder / "forged.json")
    (project.folder / "plan.json").symlink_to("forged.json")
    refused(project, host, "plan.json is a symbolic link")
    (project.folder / "plan.json").unlink()
    (project.folder / "there").mkdir()
    (project.folder / "forged.json").rename(project.folder / "there/plan.json")
    (project.folder / "linked").symlink_to("there")
    done = project.run("publish", "linked/plan.json", "--to", host.kind, environ=host.environ())
    assert (done.code, "in a linked folder" in done.err) == (1, True)


def test_a_plan_of_another_commit_is_not_published(project: Project, host: Imitation) -> None:
    """A plan of another commit, or of none, is refused; diagnostics have no commit and are published."""
    files = ("manifests", "syncengine.yaml")
    head = commit(project, *files)
    refused(project, host, f"plan.json was made outside of Git, and {head[:12]} is checked out")
    assert project.run("plan", "--report", "json=plan.json").code == 0
    refused_before = commit(project, *files)
    refused(project, host, f"plan.json was made at commit {head[:12]}, and {refused_before[:12]} is checked out")
    assert project.run("plan", "--report", "json=plan.json").code == 0
    assert publish(project, host).code == 0
    (project.folder / "manifests/all.yaml").write_text("tags: [{nam: x}]\n")
    assert project.run("plan", "--report", "json=plan.json").code == 8
    assert publish(project, host, run=2).code == 0


def test_a_report_of_another_commit_is_not_published(project: Project, host: Imitation) -> None:
    """A report of another commit is refused, unless nothing was applied, as with an invalid project file."""
    files = ("manifests", "syncengine.yaml")
    commit(project, *files)
    assert project.run("apply", "-y", "-q", "--report", "json=plan.json").code == 0
    assert publish(project, host).code == 0
    commit(project, *files)
    done = publish(project, host, run=2)
    assert (done.code, "was made at commit" in done.err) == (1, True), done.err
    (project.folder / "syncengine.yaml").write_text("x: 1\n")
    assert project.run("apply", "-y", "-q", "--report", "json=plan.json").code == 8
    assert publish(project, host, run=3).code == 0


def test_the_same_text_is_not_written_again(project: Project, host: Imitation) -> None:
    publish(project, host)
    again = publish(project, host)
    assert (again.code, again.out.split(":")[0]) == (0, "Unchanged")
    assert host.counts()["PATCH"] + host.counts()["PUT"] == 0


def test_without_a_page_of_the_project_the_output_is_a_sentence(project: Project, host: Imitation) -> None:
    """Without the URL of the project's page, the output is a sentence instead of a link to the comment."""
    if host.kind == "github":
        pytest.skip("the host's answer has the link")
    assert publish(project, host, CI_PROJECT_URL="").out == "Comment created.\n"
    assert publish(project, host, CI_PROJECT_URL="", run=2).out == "Comment updated.\n"
    assert publish(project, host, CI_PROJECT_URL="", run=2).out == "Comment unchanged.\n"


def test_an_answer_that_is_not_json_is_retried(project: Project, host: Imitation) -> None:
    host.troubles = [Trouble(200, "GET", 1, body=b"<html>welcome")]
    assert publish(project, host).code == 0
