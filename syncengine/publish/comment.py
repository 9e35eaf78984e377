"""JSON file → its text and outputs → one comment of a pull request for each key, even if several jobs write at once.

Files are documents of docs/formats.md that `plan`, `apply` and `validate` print or write, and saved plans. Any defect
of a file is an error. The hosts have no conditional write. So every write is preceded and followed by a look at all of
our comments with the key. One of them survives, by a rule that all jobs share, and the others are deleted.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from syncengine.apply.report import Outcome, RunStatus
from syncengine.errors import SyncengineError
from syncengine.plan import saved
from syncengine.project import git
from syncengine.project.files import refuse_links, write_whole
from syncengine.project.model import Project
from syncengine.publish.api import NotAllowed, NotThere
from syncengine.publish.hosts import Host
from syncengine.publish.place import CommentPlace, PullState, RunOrder, as_number
from syncengine.render import formats
from syncengine.render.documents import diagnostics_of
from syncengine.render.markdown import Size, code, plan_markdown, report_markdown, trouble_markdown
from syncengine.render.plan_files import CURE, PlanFile, document_in, file_content
from syncengine.render.style import Look
from syncengine.render.view import SHORT

SAFE = re.compile(r"[0-9A-Za-z._-]*")
"""The letters of an output, which is always one line."""
PLAN_ID = re.compile(r"[0-9A-Za-z._-]{0,200}")
COUNTED = ("create", "update", "delete", "retire", "forget")
"""The actions that outputs count. Those from the third on are removals."""

Outputs = Mapping[str, str]
"""The names and values for later steps and jobs: words, numbers and ids, never text from a manifest."""


# --- the file


class Publication(NamedTuple):
    """A document to publish. `markdown` renders it, in at most a number of units of a measure.

    `has_commit` is whether the document names its commit wherever there is one, as all do but errors.
    """

    markdown: Callable[[Look, int, Size], str]
    outputs: Outputs
    commit: str | None = None
    has_commit: bool = False


def publication_of(path: Path, name: str, project: Project | None) -> Publication:
    """Return the publication of a file, called `name` in messages. Raise `SyncengineError` for any other file.

    A saved plan gets the approvals of its project, if that is known.
    """
    try:
        refuse_links(path)
    except OSError:
        linked = "is a symbolic link or in a linked folder, which may lead to what this run did not write"
        raise _unfit(f"{name} {linked}: {CURE}") from None
    content = file_content(path, name)
    document = document_in(content, name)
    if isinstance(document, formats.ReportFormat):
        return _of_report(document, name)
    if isinstance(document, formats.Diagnostics):
        found = diagnostics_of(document.diagnostics)
        return Publication(partial(trouble_markdown, found), _outputs({}, False, False, "", name))
    plan = PlanFile(document, saved.bare_plan(content, name))
    return _of_plan(plan.judged(project) if project else plan.document, name)


def refuse_committed(publication: Publication, path: Path, name: str, head: str | None) -> None:
    """Refuse a file that this run did not write: one that Git has, or one made at another commit than `head`.

    Whoever can commit a file can commit a forged plan, but none that names its own commit.
    """
    if git.may_keep(path.parent, path.name):
        cure = "write it elsewhere, or delete it from Git"
        raise _unfit(f"{name} is in Git, or Git cannot say, so that it may not be what this run wrote: {cure}")
    if head and publication.commit != head and (publication.commit or publication.has_commit):
        made = f"at commit {publication.commit[:SHORT]}" if publication.commit else "outside of Git"
        raise _unfit(f"{name} was made {made}, and {head[:SHORT]} is checked out: {CURE}")


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="publish-file")


def _of_plan(plan: formats.PlanFormat, name: str) -> Publication:
    counts = {word: getattr(plan.summary, word) for word in COUNTED}
    outputs = _outputs(counts, bool(plan.changes or plan.sweep), plan.gate.tripped, plan.id, name)
    return Publication(partial(plan_markdown, plan), outputs, plan.commit, has_commit=True)


def _of_report(report: formats.ReportFormat, name: str) -> Publication:
    """Return the publication of a report, whose outputs count the applied changes."""
    applied = Counter(result.action for result in report.results if result.outcome is Outcome.APPLIED)
    is_closed = any(diagnostic.code == "gate" for diagnostic in report.diagnostics)
    outputs = _outputs(applied, report.summary.applied > 0, is_closed, report.plan or "", name)
    # A refused run may have been unable to read the project, with its commit.
    has_commit = report.status is not RunStatus.REFUSED
    return Publication(partial(report_markdown, report), outputs, report.commit, has_commit)


def _outputs(counts: Mapping[str, int], changes: bool, is_closed: bool, plan_id: str, name: str) -> Outputs:
    if not PLAN_ID.fullmatch(plan_id):
        raise _unfit(f"{name} is damaged: its plan id is malformed")
    create, update, *removals = (counts.get(word, 0) for word in COUNTED)
    return {
        "has_changes": str(changes).lower(),
        "create": str(create),
        "update": str(update),
        "remove": str(sum(removals)),
        "gate": str(is_closed).lower(),
        "plan_id": plan_id,
    }


def output_lines(outputs: Outputs) -> str:
    """Return `name=value` lines, which CI passes to later steps and jobs."""
    assert all(SAFE.fullmatch(value) for value in outputs.values())
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def write(path: Path, text: str, purpose: str, *, append: bool = False) -> None:
    """Write a file that CI reads, or append to one that other programs may write too."""
    try:
        if not append:
            write_whole(path, [text.encode()])
            return
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise SyncengineError(f"{path}: {purpose} cannot be written: {error.strerror}", code="report-file") from None


# --- its text, with a hidden marker of key, commit and CI run, within the host's limit

KEY = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._]|-(?!-)){0,99}")
"""The pattern of a key, which cannot end an HTML comment."""
_PARTS = re.compile(r" (\w+)=([0-9a-f]+)(?= )")
URL = re.compile(r"https?://[0-9A-Za-z._~:/?#@!$&*+,;=%-]+")


class Marker(NamedTuple):
    """The hidden marker of one comment."""

    key: str
    head: str
    run: RunOrder

    @property
    def prefix(self) -> str:
        """The text with which exactly the comments with this key begin."""
        return f"<!-- syncengine:{self.key} "

    def __str__(self) -> str:
        run = f"run={self.run.number} id={self.run.id} attempt={self.run.attempt}"
        return f"{self.prefix}{f'head={self.head} ' if self.head else ''}{run} -->"


def run_of(body: str) -> RunOrder:
    """Return the CI run that wrote a comment of ours. An unreadable marker counts as the oldest run."""
    parts = dict(_PARTS.findall(body.partition("-->")[0]))
    return RunOrder(*(as_number(parts.get(name, "")) for name in ("id", "run", "attempt")))


class CommentLimit(NamedTuple):
    """The maximum number of characters or bytes of a comment, as counted by `size`."""

    most: int
    size: Callable[[str], int]


LIMITS = {
    "github": CommentLimit(65_536, lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2),
    "gitlab": CommentLimit(1_000_000, lambda text: len(text.encode("utf-8", "surrogatepass"))),
}
"""The limits of the hosts. GitHub's unit is undocumented, so it is taken as UTF-16; GitLab's is taken as bytes."""


def comment_of(publication: Publication, place: CommentPlace, marker: Marker, limit: CommentLimit, look: Look) -> str:
    """Return the text of the comment: its hidden marker, the rendering, and its origin."""
    url = place.job if place.job and URL.fullmatch(place.job) else ""
    commit = f"Commit {code(place.head[:SHORT])}" if place.head else ""
    run = f"run {place.run.number}" if place.run.number else ""
    words = ", ".join(filter(None, (commit, run, f"[job]({url})" if url else "")))
    opening, ending = f"{marker}\n", f"\n<sub>{words}</sub>\n" if words else ""
    look = replace(look, links=look.links.at(publication.commit or place.head), job=url)
    room = limit.most - limit.size(opening + ending)
    return f"{opening}{publication.markdown(look, room, limit.size)}{ending}"


# --- its place

LOOKS = 12
"""The largest number of looks at the comments. Two are usual; as many jobs as write at once may need one more each."""
SETTLING_SECONDS = 1.0
"""The time that a job of an older run may take from its look to its write, which overwrites ours."""


class Published(StrEnum):
    """The outcomes of a publication."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    OLDER = "older"
    SUMMARY = "summary"


class Publishing(NamedTuple):
    """The outcome of a publication, with the URL of the comment, or the reason why there is none."""

    outcome: Published
    url: str = ""
    reason: str = ""


def publish(kind: type[Host], place: CommentPlace, marker: Marker, text: str) -> Publishing:
    """Write the comment. The outcome is `SUMMARY` when this job cannot, and the text must be shown elsewhere."""
    if place.token is None and place.is_fork:
        return Publishing(Published.SUMMARY, reason="the job of a fork has no token")
    with kind.at(place, kind.needs) as host:
        try:
            number = place.number
            if number is None and (pull := host.pull_of_commit()) is not None:
                if pull.is_foreign and pull.state is PullState.MERGED:  # its authors see no report of our branch
                    reason = f"{kind.request} {pull.number} came from another repository"
                    return Publishing(Published.SUMMARY, reason=reason)
                number = pull.number
            if number is None:
                return Publishing(Published.SUMMARY, reason=f"this job belongs to no {kind.request}")
            return _write(host, number, marker, text)
        except NotAllowed as refusal:
            cure = "" if place.is_fork else f"; it needs {kind.needs}"
            return Publishing(Published.SUMMARY, reason=f"the token may not write comments ({refusal}){cure}")
        except NotThere as refusal:
            cure = f"check that {place.project} and the {kind.request} exist, and that the token may read them"
            raise SyncengineError(
                f"{kind.title} did not find the {kind.request} ({refusal}): {cure}", code="publish-place"
            ) from None


def _write(host: Host, number: int, marker: Marker, text: str) -> Publishing:
    """Look at our comments and take the next step, until a look finds nothing left to do."""
    author, created, is_last_look = host.author(), None, False
    tried = outcome = Published.UNCHANGED

    def step() -> Publishing | None:
        nonlocal author, created, tried, outcome, is_last_look
        ours = [c for c in host.comments(number) if c.author == author and c.body.startswith(marker.prefix)]
        if created is not None and all(each.id != created.id for each in ours):
            ours.append(created)  # a list may be older than our last write
        if not ours:
            tried = Published.CREATED
            created, outcome = host.create(number, text), tried
            author = created.author if created is not None and created.author else author  # it may have been a guess
            return None
        # By this rule, which all jobs share, one of several comments survives: the first one of the newest run.
        keeper = max(ours, key=lambda comment: (run_of(comment.body), -comment.id))
        for comment in ours:
            if comment.id != keeper.id:
                host.delete(number, comment.id)
        run = run_of(keeper.body)
        if run > marker.run:
            return Publishing(Published.OLDER, keeper.url, f"run {run.number or run.id} is newer")
        # Hosts change line ends and outer blanks.
        is_same = keeper.body.replace("\r\n", "\n").strip() == text.replace("\r\n", "\n").strip()
        if is_same:
            outcome = tried  # also by a write whose answer was lost
        if is_same or (outcome is not Published.UNCHANGED and run == marker.run):
            if outcome is not Published.UPDATED or is_last_look:
                return Publishing(outcome, keeper.url)
            is_last_look = True  # an older run may have looked before our update, and overwrite it
            time.sleep(SETTLING_SECONDS)
            return None
        tried = Published.CREATED if tried is Published.CREATED else Published.UPDATED
        try:
            host.update(number, keeper.id, text)
        except NotThere:  # another job has deleted it since: look again
            created = None
            return None
        outcome, is_last_look = tried, False
        return None

    for _ in range(LOOKS):
        # A write that failed may have been executed, so that the step begins with a look again.
        if (end := host.api.persist(step)) is not None:
            return end
    raise SyncengineError("another job keeps writing the same comment: repeat when it has ended", code="publish-race")
