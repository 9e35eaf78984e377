"""Parts of outputs that pages show in blocks of `text` are printed by the program in the situation that the page names.

`SYNCENGINE_DOCS=write` writes them anew where more than ids, times and approvals differs.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.cli.program import Project, tag
from tests.cli.service import serving
from tests.git_state.places import url
from tests.pull_requests.clones import Clone
from tests.quarantine.refusing import refusing
from tests.support.git import bare
from tests.support.pages import ROOT, WRITES, blocks

CHANGING = re.compile(
    r"\b[0-9a-f]{12}\b|@[0-9a-f]{20}\b"  # ids of runs, commits and versions; approvals
    r"|\b\d{4}-\d\d-\d\d(?:T[\d:+]+)?|\b\d\d:\d\d\b"  # dates and times
    r"|\s+\d+ rows?\s+|by \w+ on [\w.-]+"
)
"""What differs in every run, or on every machine."""
NOT_PRINTED = {"manifests/acme.yaml:12: error[refused]", "name,description,category", '{"format": "syncengine.state-'}
"""The beginnings of blocks that are no output: a form of words, and files that a command reads."""

WORDS = "the externalId is reserved"
LONG = "Short description of a {} that the client of the office has asked us to file before his patent, with {} to date"


def project_in(folder: Path, *settings: str) -> Clone:
    """A project in the sandbox, in the folder of a reader."""
    clone = Clone(folder)
    clone.write("syncengine.yaml", "\n".join(["version: 1", "service: {baseUrl: sandbox}", *settings, ""]))
    return clone


def tags(descriptions: Mapping[str, str], **fields: str) -> str:
    more = "".join(f", {name}: {value}" for name, value in fields.items())
    lines = [f'  - {{name: {name}, description: "{text}"{more}}}' for name, text in descriptions.items()]
    return "\n".join(["tags:", *lines, ""])


def assert_shown(page: str, begin: str, printed: str, *, until: str | None = None) -> None:
    """The block of the page that begins so is a part of what was printed, up to the line that begins with `until`."""
    path = ROOT / page
    (block,) = (body for body in blocks(path, "text") if body.startswith(begin))
    rest = printed[printed.index(begin) :]
    part = rest if until is None else rest[: rest.index(f"\n{until}") + 1]
    if WRITES and CHANGING.sub("…", part) != CHANGING.sub("…", block):
        path.write_text(path.read_text(encoding="utf-8").replace(block, part), encoding="utf-8")
        block = part
    assert CHANGING.sub("…", block) == CHANGING.sub("…", part)


def test_every_block_is_printed_by_a_test() -> None:
    """A new block of text gets a test here, or in the tests of its command."""
    begins = re.compile(r"assert_shown\(\s*\"docs/[a-z-]+\.md\", \"([^\"]+)\"")
    tested = {*begins.findall(Path(__file__).read_text(encoding="utf-8")), "Drift:", *NOT_PRINTED}
    texts = [body for page in sorted((ROOT / "docs").glob("*.md")) for body in blocks(page, "text")]
    assert [text for text in texts if not text.startswith(tuple(tested))] == []


def test_an_odd_change_stands_above_the_mass(tmp_path: Path) -> None:
    folder = project_in(tmp_path)
    before = {f"ACME-{number:04}": f"Matter {number}" for number in range(1, 301)}
    folder.write("manifests/acme.yaml", tags(before))
    folder.prints("apply", "-y")
    after = {name: f"{text} (reviewed)" for name, text in before.items()}
    folder.write("manifests/acme.yaml", tags({**after, "ACME-0150": "Strictly confidential merger of A and B"}))
    assert_shown("docs/reviews.md", "Update 300 tags", folder.prints("plan"))


def test_a_long_text_is_cut_around_its_edits(tmp_path: Path) -> None:
    folder = project_in(tmp_path)
    folder.write("manifests/acme.yaml", tags({"ACME-0007": LONG.format("matter", "costs")}))
    folder.prints("apply", "-y")
    folder.write("manifests/acme.yaml", tags({"ACME-0007": LONG.format("case", "fees")}))
    assert_shown("docs/reviews.md", "  ~ ACME-0007", folder.prints("plan"))


def test_new_resources_have_one_line_each(tmp_path: Path) -> None:
    """The example of the repository, of which the page shows the first three lines."""
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    printed = project_in(tmp_path).prints("plan")
    assert_shown("docs/reviews.md", "Create 11 tags", printed, until="  + HAR-1003")


def test_a_base_separates_a_pull_request_from_what_waits(tmp_path: Path) -> None:
    folder = project_in(tmp_path)
    folder.write(".gitignore", ".syncengine/\n")
    names = ("Ada", "Bob", "Cole", "Dora", "Eve")
    folder.write("manifests/tags.yaml", tags(dict.fromkeys(names, "one")))
    folder.prints("apply", "-y")
    folder.git("init", "--quiet", "--initial-branch=main")
    folder.write("manifests/tags.yaml", tags({**dict.fromkeys(names, "one"), "Eve": "merged"}))
    for branch, text in (("main", "one"), ("tidy", "two")):
        if branch == "tidy":
            folder.git("update-ref", "refs/remotes/origin/main", "HEAD")
            folder.git("switch", "--quiet", "--create", "tidy")
            settings = (folder.folder / "syncengine.yaml").read_text(encoding="utf-8")
            folder.write("syncengine.yaml", f"{settings}policy: {{maxDeletes: {{tags: 100%}}}}\n")
        folder.write("manifests/tags.yaml", tags({**dict.fromkeys(names, "one"), "Cole": text, "Eve": "merged"}))
        folder.commit()
    assert_shown("docs/reviews.md", "This pull request", folder.prints("plan", "--base", "origin/main"))


def test_a_blocked_plan_names_its_units(tmp_path: Path) -> None:
    """The page computes its gate: 36 of 126 tags go with an approved category, 30 of the other 90 with a manifest."""
    folder = project_in(tmp_path)
    kept = {f"KEEP-{number:04}": "a" for number in range(60)}
    folder.write("manifests/kept.yaml", tags(kept))
    folder.write("manifests/internal.yaml", tags({f"INT-{number:04}": "a" for number in range(30)}))
    folder.write("manifests/jacobi.yaml", tags({f"JAC-{number:04}": "a" for number in range(36)}, category="jacobi"))
    folder.write("manifests/clients.yaml", "tagCategories: [{externalId: jacobi, label: Jacobi GmbH}]\n")
    folder.prints("apply", "-y")
    for name in ("internal", "jacobi", "clients"):
        folder.write(f"manifests/{name}.yaml", "")
    gate = json.loads(folder.prints("plan", "--format", "json"))["gate"]
    (approved,) = (unit["approve"] for unit in gate["units"] if unit["unit"] == "category/jacobi")
    settings = "version: 1\nservice: {baseUrl: sandbox}\n\napprovals:\n"
    folder.write("syncengine.yaml", f"{settings}  - {approved}\n")
    assert_shown("docs/manifests.md", "Blocked: approval needed for these removals.", folder.prints("plan"))


def test_undone_changes_are_refused_until_the_revert(tmp_path: Path) -> None:
    folder = project_in(tmp_path)
    folder.write("manifests/acme.yaml", tags({"ACME-0042": "Opposition"}))
    folder.prints("apply", "-y")
    folder.write("manifests/acme.yaml", tags({"ACME-0042": "Opposition", "ACME-0043": "Licence"}))
    folder.prints("apply", "-y")
    run = json.loads(folder.prints("state", "history", "--format", "json"))["runs"][0]["id"]
    folder.prints("plan", "--undo", run, "--out", "undo.json")
    folder.prints("apply", "undo.json")
    assert_shown("docs/repair.md", "error[undone]", folder.prints("apply", "-y", code=4))


def test_a_refused_change_says_so_until_it_is_set_aside(tmp_path: Path) -> None:
    """The plan quotes the service; in quarantine, a warning repeats the reason."""
    with refusing() as service:
        project = Project(tmp_path, service.url)
        service.refuse("2024-117", words=WORDS)
        project.wants("matters.yaml", tags=[tag("GOOD"), tag("ALSO GOOD"), tag("2024-117")])
        assert [project.apply().code for _ in range(3)] == [3, 3, 3]
        assert_shown("docs/repair.md", "Create 1 tag", project.run("plan").out)
        head = (
            f"# syncengine.yaml\nversion: 1\nservice: {{baseUrl: {service.url}, apiKey: {{env: SYNCENGINE_API_KEY}}}}\n"
        )
        entry = "  - address: tag/2024-117\n    reason: ticket 4711\n    until: 2099-01-31\n"
        (tmp_path / "syncengine.yaml").write_text(f"{head}quarantine:\n{entry}", encoding="utf-8")
        assert_shown("docs/repair.md", "manifests/matters.yaml:4: warning[quarantined]", project.run("plan").out)


def test_a_state_in_git_lists_its_versions(tmp_path: Path) -> None:
    """An apply makes two: when it begins, and when it ends."""
    with serving() as service:
        project = Project(tmp_path / "project", service.url)
        project.settings(f"state: {url(bare(tmp_path / 'remote.git'))}")
        for names in ("A", "AB"):
            project.wants(tags=[tag(name) for name in names])
            done = project.run("apply", "-y", "--new-state")
            assert done.code == 0, done.err
        printed = project.run("state", "versions").out
    shown = "".join(printed.splitlines(keepends=True)[:3])
    assert_shown("docs/state.md", "$ syncengine state versions", f"$ syncengine state versions\n{shown}")


def test_files_that_a_page_shows_can_be_read(tmp_path: Path) -> None:
    """A list for `adopt`, and an export of a state."""
    folder = project_in(tmp_path)
    for page, name, begin, words in (
        ("docs/commands.md", "tags.csv", "name,description", ("adopt",)),
        ("docs/formats.md", "state.jsonl", '{"format"', ("state", "import", "-y")),
    ):
        (block,) = (body for body in blocks(ROOT / page, "text") if body.startswith(begin))
        folder.write(name, block)
        folder.prints(*words, name)
