"""`publish` maintains exactly one comment of its own in a pull request, despite failures of hosts and parallel jobs."""

import json
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from syncengine.publish.api import asked_wait
from tests.cli.program import Ended, Project, tag
from tests.publish.hosts import BOT, PERSON, TOKEN, Imitation, Trouble, imitation
from tests.support.git import commit_all, git

pytestmark = pytest.mark.slow

MARKER = "<!-- syncengine:default "


def publish(project: Project, host: Imitation, *words: str, run: int = 1, **environ: str) -> Ended:
    done = project.run("publish", "plan.json", "--to", host.kind, *words, environ=host.environ(run, **environ))
    assert TOKEN not in done.out + done.err
    return done


def published(project: Project, host: Imitation, *words: str, run: int = 1, **environ: str) -> str:
    """Publish with success, and return the first word of the output, which says what happened to the comment."""
    done = publish(project, host, *words, run=run, **environ)
    assert done.code == 0, done.err
    return done.out.partition(":")[0]


def refused(project: Project, host: Imitation, code: int, words: str, **environ: str) -> None:
    """Publishing fails before anything is sent."""
    done = publish(project, host, **environ)
    assert (done.code, words in done.err) == (code, True), done.err
    assert host.requests == []


def planned(project: Project, *, code: int = 0) -> None:
    assert project.run("plan", "--report", "json=plan.json").code == code


def diagnosed(project: Project, *messages: str) -> None:
    """Put errors of planning into `plan.json`."""
    place = {"file": "manifests/all.yaml", "line": 1, "column": None, "address": None}
    found = [{"severity": "error", "code": f"c-{n}", "message": text, **place} for n, text in enumerate(messages)]
    document = {"format": "syncengine.diagnostics/v1", "diagnostics": found}
    (project.folder / "plan.json").write_text(json.dumps(document))


# --- one comment


def test_a_comment_is_created_and_then_updated(project: Project, host: Imitation) -> None:
    """All runs share one comment, which begins with a hidden marker that names the commit and the run."""
    assert published(project, host) == "Created"
    (id,) = host.comments
    (body,) = host.bodies()
    assert body.startswith(f"{MARKER}head={1:040x} run=1 id=9001 ")
    assert "### Plan: 2 to create" in body
    job = host.environ()["CI_JOB_URL"] if host.kind == "gitlab" else "https://host.example/acme/tags/actions/runs/9001"
    assert f"]({job})" in body
    assert published(project, host) == "Unchanged"
    assert host.bodies() == [body]
    assert published(project, host, run=2) == "Updated"
    assert list(host.comments) == [id]
    assert host.bodies()[0].startswith(f"{MARKER}head={2:040x} run=2 ")


def test_a_comment_of_a_person_is_never_overwritten(project: Project, host: Imitation) -> None:
    publish(project, host)
    (body,) = host.bodies()
    host.comments.clear()
    host.add(body, PERSON)
    host.add(f"> {body}", PERSON)
    host.add(f"I said:\n{body}", BOT)
    before = {id: dict(comment) for id, comment in host.comments.items()}
    assert published(project, host, run=2) == "Created"
    assert {id: host.comments[id] for id in before} == before


def test_an_older_run_that_comes_later_writes_nothing(project: Project, host: Imitation) -> None:
    publish(project, host, run=5)
    (body,) = host.bodies()
    done = publish(project, host, run=4, GITHUB_RUN_ATTEMPT="3", CI_JOB_ID="99999")
    assert (done.code, "run 5 is newer" in done.err) == (0, True)
    assert host.bodies() == [body]


def test_each_key_has_a_comment_of_its_own(project: Project, github: Imitation) -> None:
    """By default the key is the name of the environment; one that would break the marker is a usage error."""
    for key in ("prod", "prod-eu"):
        assert published(project, github, "--key", key) == "Created"
    assert published(project, github, SYNCENGINE_ENV="prod", run=2) == "Updated"
    for key in ("a b", "-->", "a--b", "x\ny"):
        assert publish(project, github, "--key", key).code == 64
    assert len(github.bodies()) == 2


def test_the_comment_is_found_on_any_page(project: Project, host: Imitation) -> None:
    host.page = 2
    for run, word in ((1, "Created"), (2, "Updated")):
        for n in range(5):
            host.add(f"looks good {n}", PERSON)
        assert published(project, host, run=run) == word


def test_a_list_ends_where_the_host_repeats_a_page(project: Project, host: Imitation) -> None:
    """It does not read the number of a page that it has not named; no comment counts twice."""
    host.paging = "deaf"
    publish(project, host)
    for n in range(120):
        host.add(f"looks good {n}", PERSON)
    asked = len(host.requests)
    assert published(project, host, run=2) == "Updated"
    assert sum(method == "GET" for method, _ in host.requests[asked:]) < 10


def test_a_next_page_on_another_host_gets_no_token(project: Project, github: Imitation) -> None:
    github.page, github.next_host = 1, "http://127.0.0.1:9"
    github.add("one", PERSON)
    github.add("two", PERSON)
    done = publish(project, github)
    assert (done.code, "another host" in done.err) == (1, True)


def test_a_token_whose_user_is_unknown_updates_its_comment(project: Project, github: Imitation) -> None:
    github.author = PERSON
    for run in (1, 2):
        published(project, github, run=run)
    (body,) = github.bodies(PERSON)
    assert " run=2 " in body


def test_duplicates_of_a_race_become_one(project: Project, github: Imitation) -> None:
    publish(project, github, run=3)
    (body,) = github.bodies()
    for run in (5, 4):
        github.add(body.replace("run=3 id=9003", f"run={run} id={9000 + run}"), BOT)
    done = publish(project, github, run=4)
    assert (done.code, "run 5 is newer" in done.err) == (0, True)
    (left,) = github.bodies()
    assert " run=5 " in left


@pytest.mark.parametrize(("runs", "there"), [((7, 8), False), ((8, 7), True), ((7, 7), False)])
def test_two_jobs_at_once_end_with_one_comment(
    project: Project, github: Imitation, runs: tuple[int, int], there: bool
) -> None:
    if there:
        publish(project, github, run=6)
    github.hold = {"GET": 0.05, "POST": 0.2, "PATCH": 0.2}
    with ThreadPoolExecutor(len(runs)) as jobs:
        list(jobs.map(lambda job, run: published(project, github, run=run, GITHUB_SHA=f"{job:040x}"), (1, 2), runs))
    (body,) = github.bodies()
    assert f" run={max(runs)} " in body


def test_what_an_older_run_writes_over_the_newest_is_replaced(project: Project, github: Imitation) -> None:
    """It had looked before the newer one wrote, which therefore looks once more."""
    publish(project, github, run=3)
    ((id, comment),) = github.comments.items()
    older = dict(comment)

    def write_late() -> None:
        while "PATCH" not in dict(github.requests) or github.requests[-1][0] != "GET":
            time.sleep(0.01)
        time.sleep(0.1)
        github.comments[id] = older

    with ThreadPoolExecutor(1) as late:
        writing = late.submit(write_late)
        assert published(project, github, run=4) == "Updated"
        writing.result(60)
    assert " run=4 " in github.bodies()[0]


# --- hosts that refuse or fail


def test_with_a_token_that_only_reads_the_text_is_in_the_summary(project: Project, host: Imitation) -> None:
    host.reads_only = True
    summary = project.folder / "summary"
    done = publish(project, host, GITHUB_STEP_SUMMARY=str(summary))
    assert (done.code, "may not write" in done.err) == (0, True)
    assert "### Plan: 2 to create" in summary.read_text()
    assert host.comments == {}
    assert "### Plan: 2 to create" in publish(project, host).out


NO_JOB = dict.fromkeys(("GITHUB_REPOSITORY", "GITHUB_API_URL", "CI_API_V4_URL", "CI_PROJECT_ID"), "")
OTHER, SPENT = {"GITHUB_REPOSITORY": "acme/other", "CI_PROJECT_ID": "78"}, "s3cret"
PROXY = f"me:{SPENT}@127.0.0.1:9"
REFUSED: dict[str, tuple[Mapping[str, str], int, str]] = {
    "another project": (OTHER, 1, "and the {request} exist, and that the token may read them"),
    "an expired token": ({"GITHUB_TOKEN": SPENT, "GITLAB_TOKEN": SPENT}, 7, "rejects the token"),
    "no token": ({"GITHUB_TOKEN": "", "GITLAB_TOKEN": ""}, 1, "is not set: pass it to this step"),
    "two words": ({"GITHUB_TOKEN": f"x {SPENT}", "GITLAB_TOKEN": f"x {SPENT}"}, 64, "is not a token"),
    "a kind of proxy": ({"ALL_PROXY": f"socks4://{PROXY}"}, 64, "ALL_PROXY names a kind of proxy"),
    "no job": (NO_JOB, 64, "are not set: CI sets them in its jobs; elsewhere, only `publish --dry-run` works"),
}


@pytest.mark.parametrize(("environ", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_a_setting_that_is_wrong_is_explained(
    project: Project, host: Imitation, environ: Mapping[str, str], code: int, words: str
) -> None:
    """No secret is shown, even if the host repeats it."""
    done = publish(project, host, **environ)
    request = {"github": "pull request", "gitlab": "merge request"}[host.kind]
    assert (done.code, words.format(request=request) in done.err) == (code, True), done.err
    assert SPENT not in done.out + done.err


def test_an_address_where_nobody_answers_is_named(project: Project, github: Imitation) -> None:
    """That of the host, or of the proxy whose password is not shown. A proxy is not used for an address of NO_PROXY."""
    away = {"GITHUB_API_URL": "http://127.0.0.1:9"}, {"HTTP_PROXY": f"http://{PROXY}"}
    with ThreadPoolExecutor(2) as jobs:  # both are tried again for some time
        host, proxy = jobs.map(lambda environ: publish(project, github, **environ), away)
    assert (host.code, "nothing is listening at the address" in host.err) == (9, True), host.err
    assert (proxy.code, "127.0.0.1:9 (HTTP_PROXY) cannot be reached" in proxy.err) == (9, True), proxy.err
    assert SPENT not in proxy.out + proxy.err
    assert published(project, github, HTTP_PROXY=f"http://{PROXY}", NO_PROXY="[::1],127.0.0.0/8") == "Created"


LATER = {"retry-after": "0"}
NO_JOY = {"message": "Validation Failed", "errors": [{"field": "body", "message": "no emoji, please"}, "and no joy"]}
TROUBLES = {
    "too many reads": (Trouble(429, "GET", 2, LATER), 0, ""),
    "a gateway before a write": (Trouble(502, "POST", 2, LATER), 0, ""),
    "no JSON": (Trouble(200, "GET", 1, body=b"<html>welcome"), 0, ""),
    "an outage without an end": (Trouble(503, "", 1000, LATER), 9, "503"),
    "a wait that is too long": (Trouble(429, "", 1000, {"retry-after": "3600"}), 9, "3600 s"),
    "a refusal with details": (
        Trouble(422, "POST", 1, body=json.dumps(NO_JOY).encode()),
        1,
        "Validation Failed: no emoji, please: and no joy",
    ),
}


@pytest.mark.parametrize(("trouble", "code", "words"), TROUBLES.values(), ids=TROUBLES)
def test_trouble_is_repeated_while_that_may_help(
    project: Project, github: Imitation, trouble: Trouble, code: int, words: str
) -> None:
    """After the time that the host asks for, within limits of time and attempts; otherwise its words are shown."""
    github.knows_user, github.troubles = True, [replace(trouble)]
    done = publish(project, github)
    assert (done.code, words in done.err) == (code, True), done.err
    assert len(github.bodies()) == (code == 0)
    assert len(github.requests) <= 12


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


@pytest.mark.parametrize("executed", [True, False])
def test_a_write_with_unknown_outcome_is_told_as_what_it_did(project: Project, host: Imitation, executed: bool) -> None:
    for run, word in ((1, "Created"), (2, "Updated")):
        lost = [Trouble(502, method, 1, LATER, b"<html>bad gateway", executed) for method in ("POST", "PATCH", "PUT")]
        host.troubles = lost
        assert published(project, host, run=run) == word
        assert len(host.bodies()) == 1


# --- what is published


def test_outputs_are_handed_to_later_steps_and_jobs(project: Project, github: Imitation) -> None:
    """Appended to GitHub's output file and written to the --dotenv file: those of a plan, of the report of its apply,
    of a plan that needs an approval or has that of the project file, and of errors, which replace the plan."""
    file, dotenv = project.folder / "outputs", project.folder / "plan.env"

    def outputs(run: int) -> str:
        file.write_text("other=1\n")
        published(project, github, "--dotenv", str(dotenv), run=run, GITHUB_OUTPUT=str(file))
        assert file.read_text() == f"other=1\n{dotenv.read_text()}"
        return dotenv.read_text()

    id = json.loads((project.folder / "plan.json").read_text())["id"]
    assert outputs(1) == f"has_changes=true\ncreate=2\nupdate=0\nremove=0\ngate=false\nplan_id={id}\n"
    assert project.run("apply", "-y", "--report", "json=plan.json").code == 0
    assert outputs(2).startswith("has_changes=true\ncreate=2\nupdate=0\n")
    project.wants(tags=[tag("OTHER-1")])
    planned(project)
    assert "remove=2\ngate=true\n" in outputs(3)
    approve = json.loads((project.folder / "plan.json").read_text())["gate"]["approve"]
    assert approve in github.bodies()[0]
    assert project.run("plan", "--out", "plan.json").code == 0
    project.settings("approvals:", f"  - {approve}")
    assert "gate=false\n" in outputs(4)
    assert "Approved: syncengine.yaml:8" in github.bodies()[0]
    (project.folder / "manifests/all.yaml").write_text("tags: [{nam: x}]\n")
    planned(project, code=8)
    assert outputs(5).startswith("has_changes=false\n")
    (body,) = github.bodies()
    assert "### No plan: " in body
    assert "to create" not in body


def test_a_lone_surrogate_is_published_as_an_escape(project: Project, github: Imitation) -> None:
    file = project.folder / "plan.json"
    file.write_text(file.read_text().replace("ACME-0042", r"ACME-0042\ud83d"))
    published(project, github)
    assert r"ACME-0042\ud83d" in github.bodies()[0]


DAMAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "blanks": (lambda text: " \n", "is empty"),
    "half": (lambda text: text[: len(text) // 2], "is not JSON"),
    "another encoding": (lambda text: text.replace("ACME-0042", "Ä"), "is not JSON"),
    "deep": (lambda text: text.rpartition("}")[0] + ', "x": ' + "[" * 100_000, "is not JSON"),
    "a list": (lambda text: "[]", "is damaged"),
    "no format": (lambda text: "{}", "is neither a plan nor a report"),
    "another format": (lambda text: text.replace("plan/v1", "plan/v9"), "is neither a plan nor a report"),
    "no fields": (lambda text: '{"format": "syncengine.plan/v1"}', "is damaged"),
    "an id with a line more": (lambda text: text.replace('"id": "', '"id": "x\\ninjected=1', 1), "is damaged"),
    "a count": (lambda text: text.replace('"create": 2', '"create": "x"'), "is damaged"),
    "an action": (lambda text: text.replace('"action": "create"', '"action": "explode"'), "is damaged"),
    "an address": (lambda text: text.replace('"tag/ACME-0042"', '"tag"'), "is damaged"),
    "a line": (lambda text: text.replace('"line": 4', '"line": 0'), "is damaged"),
    "a value": (lambda text: text.replace('"after": "acme"', '"after": {"a": 1}'), "is damaged"),
    "an effect": (lambda text: text.replace('"applies"', '"sometimes"'), "is damaged"),
    "a severity": (lambda text: text.replace('"severity": "warning"', '"severity": "fatal"'), "is damaged"),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGES.values(), ids=DAMAGES)
def test_a_file_that_no_plan_is_like_is_refused(
    project: Project, github: Imitation, damage: Callable[[str], str], words: str
) -> None:
    """It is damaged, or forged: then it writes no outputs, either."""
    file, outputs = project.folder / "plan.json", project.folder / "outputs"
    file.write_text(damage(file.read_text()), encoding="latin-1")
    refused(project, github, 1, f"plan.json {words}", GITHUB_OUTPUT=str(outputs))
    assert not outputs.exists()


def test_a_file_that_is_not_there_is_named(project: Project, github: Imitation) -> None:
    (project.folder / "plan.json").unlink()
    refused(project, github, 64, "plan.json: no such file or folder")


def test_a_dry_run_prints_the_comment_and_sends_nothing(project: Project, host: Imitation) -> None:
    """--dry-run needs no token and no CI job."""
    done = publish(project, host, "--dry-run")
    assert done.out.startswith(MARKER)
    bare = project.run("publish", "plan.json", "--to", host.kind, "--dry-run")
    assert (bare.code, "### Plan: 2 to create" in bare.out) == (0, True), bare.err
    document = publish(project, host, "--dry-run", "--format", "json").document
    assert (document["outcome"], document["text"]) == ("dry-run", done.out)
    assert host.requests == []


def test_a_comment_uses_the_length_that_the_host_allows(project: Project, host: Imitation) -> None:
    """The unit of GitHub is a half of a pair of UTF-16."""
    diagnosed(project, *(f"No. {n}: {'words ' * 20}{'🏛' * 20}" for n in range(2_000)))
    published(project, host)
    (body,) = host.bodies()
    shown = len(set(re.findall(r"No\. (\d+):", body)))
    if host.kind == "gitlab":
        assert (shown, "**Shortened" in body) == (2_000, False)
    else:
        assert host.most - 2_000 < len(body.encode("utf-16-le")) // 2 <= host.most
        assert (200 < shown < 2_000, "**Shortened" in body) == (True, True)


def test_lines_are_linked_as_the_project_file_says(project: Project, github: Imitation) -> None:
    project.settings("links: {blob: 'https://code.example/acme/{commit}/{file}?at={line}'}")
    published(project, github)
    link = f"[`manifests/all.yaml:2`](<https://code.example/acme/{1:040x}/manifests/all.yaml?at=2>)"
    assert link in github.bodies()[0]
    (project.folder / "syncengine.yaml").write_text("version: [", encoding="utf-8")
    published(project, github)
    assert "](<https://host.example/acme/tags/" in github.bodies()[0]


HOSTILE = (
    "@team #123 GH-5 !4 ~bug %1 &5 $6 a/b#3 a/b!3 www.evil.example https://evil.example <b> ![x](y)"
    " [z](https://evil.example) <img/src=x/onerror=alert(1)> -->"
)


@pytest.mark.parametrize("is_planned", [True, False])
def test_no_word_from_elsewhere_becomes_markup(project: Project, github: Imitation, is_planned: bool) -> None:
    """Names and values of manifests, and messages that quote them, cannot add mentions, references, links or HTML, nor
    end the marker."""
    if is_planned:
        more = {"description": f"` `` {HOSTILE}", "keywords": [HOSTILE], "metadata": {HOSTILE: HOSTILE}}
        project.wants(tags=[tag(HOSTILE, **more)])
        planned(project)
    else:
        diagnosed(project, HOSTILE)
    published(project, github)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "CODE", github.bodies()[0].partition("-->")[2].rpartition("<sub>")[0])
    for sign in HOSTILE.split():
        assert not re.search(rf"(?<!\S){re.escape(sign)}(?!\S)", text), sign


def test_without_a_page_of_the_project_the_output_is_a_sentence(project: Project) -> None:
    with imitation("gitlab") as host:
        for run, word in ((1, "created"), (2, "updated"), (2, "unchanged")):
            assert publish(project, host, CI_PROJECT_URL="", run=run).out == f"Comment {word}.\n"


# --- files that this run did not write


@pytest.fixture
def committed(project: Project) -> Project:
    """A project whose first commit has everything but `plan.json`, which was made outside of Git."""
    git(project.folder, "init", "-q")
    (project.folder / ".gitignore").write_text("plan.json\n.syncengine/\n")
    commit_all(project.folder)
    return project


def test_a_committed_plan_is_not_published(committed: Project, github: Imitation) -> None:
    """A `plan.json` that is in Git is refused, since a branch could forge it."""
    planned(committed)
    git(committed.folder, "add", "-f", "plan.json")
    commit_all(committed.folder)
    refused(committed, github, 1, "plan.json is in Git")
    assert publish(committed, github, "--dry-run").code == 0


def test_a_link_is_not_published(project: Project, github: Imitation) -> None:
    """A plan that is a symbolic link, or in a linked folder, is refused, since a branch could choose its target."""
    (project.folder / "plan.json").rename(project.folder / "forged.json")
    (project.folder / "plan.json").symlink_to("forged.json")
    refused(project, github, 1, "plan.json is a symbolic link")
    (project.folder / "linked").symlink_to(".")
    done = project.run("publish", "linked/forged.json", "--to", github.kind, environ=github.environ())
    assert (done.code, "in a linked folder" in done.err) == (1, True)


def test_a_plan_of_another_commit_is_not_published(committed: Project, github: Imitation) -> None:
    """A plan of another commit, or of none, is refused; errors have no commit and are published."""
    first = git(committed.folder, "rev-parse", "HEAD")
    refused(committed, github, 1, f"plan.json was made outside of Git, and {first[:12]} is checked out")
    planned(committed)
    second = commit_all(committed.folder)
    refused(committed, github, 1, f"plan.json was made at commit {first[:12]}, and {second[:12]} is checked out")
    planned(committed)
    assert published(committed, github) == "Created"
    (committed.folder / "manifests/all.yaml").write_text("tags: [{nam: x}]\n")
    planned(committed, code=8)
    assert published(committed, github, run=2) == "Updated"


def test_a_report_of_another_commit_is_not_published(committed: Project, github: Imitation) -> None:
    """Unless nothing was applied, as with an invalid project file, whose report has no commit."""
    assert committed.run("apply", "-y", "-q", "--report", "json=plan.json").code == 0
    commit_all(committed.folder)
    refused(committed, github, 1, "was made at commit")
    (committed.folder / "syncengine.yaml").write_text("x: 1\n")
    assert committed.run("apply", "-y", "-q", "--report", "json=plan.json").code == 8
    assert published(committed, github) == "Created"
