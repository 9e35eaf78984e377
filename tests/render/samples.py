"""Plans, reports and diagnostics built by hand, for every rendering to show."""

import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.apply.report import CallError, Circumstances, Outcome, Report, Result, RunStatus, Session, Totals
from syncengine.errors import Diagnostic, Severity
from syncengine.plan.aim import Note
from syncengine.plan.calls import Call, Sweep
from syncengine.plan.diff import Action, Change, FieldChange, FieldEffect
from syncengine.plan.gate import Approval, Gate, Unit
from syncengine.plan.model import Basis, Plan, Summary
from syncengine.render import html, markdown, text
from syncengine.render.documents import plan_document, report_document
from syncengine.render.formats import ReportFormat
from syncengine.render.html import digest, page_file
from syncengine.render.style import PLAIN, Look
from syncengine.resource import Key, Kind, Row, Source, Value

HOSTILE = 'a\x1b[31mred\x07`|<script>alert("x")</script>\u202e\n::error::@someone #1 </details> | \\ " &'
"""Text with escapes, markup, line ends, workflow commands and mentions, each of which some output interprets."""

LONG = "Opposition proceedings against the European patent EP 1 234 567 of a rather talkative applicant"


def without_files(page: str) -> str:
    """Return a rendering without the style sheet and the script of HTML pages, which are files of their own."""
    for name in ("pages.css", "plan.js"):
        page = page.replace(page_file(name), name).replace(digest(page_file(name)), f"'digest of {name}'")
    return page


def plan_text(plan: Plan, look: Look = PLAIN) -> str:
    return text.plan_text(plan_document(plan), look)


def plan_markdown(plan: Plan, look: Look = PLAIN, limit: int = markdown.LIMIT, size: markdown.Size = len) -> str:
    return markdown.plan_markdown(plan_document(plan), look, limit, size)


def plan_html(plan: Plan, look: Look = PLAIN) -> str:
    return html.plan_html(plan_document(plan), look)


class Page(HTMLParser):
    """A page's elements, which open and close in order, and its visible text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href", "style")]
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.text += data


def page_words(plan: Plan) -> str:
    return Page(plan_html(plan)).text


SHORT: dict[str, Callable[[Plan], str]] = {
    "text": lambda plan: plan_text(plan, Look(width=400)),
    "markdown": lambda plan: re.sub("[*`]", "", plan_markdown(plan)),
    "html": page_words,
}
in_short = pytest.mark.parametrize("render", SHORT.values(), ids=SHORT)


def tag(name: str) -> Key:
    return Key(Kind.TAG, name)


def category(name: str) -> Key:
    return Key(Kind.CATEGORY, name)


def activity_type(code: str) -> Key:
    return Key(Kind.ACTIVITY_TYPE, code)


def at(line: int, file: str = "manifests/acme.yaml") -> Source:
    return Source(file, line)


def field(
    name: str, before: Value | None, after: Value | None, effect: FieldEffect = FieldEffect.APPLIES
) -> FieldChange:
    return FieldChange(name, before, after, effect)


def changing(key: Key, action: Action, source: Source | None, *fields: FieldChange, **more: Any) -> Change:
    return Change(key=key, action=action, source=source, fields=fields, **more)


def updating(name: str, *fields: FieldChange, line: int = 1, source: Source | None = None, **more: Any) -> Change:
    """Return an update of a tag."""
    return changing(tag(name), Action.UPDATE, source or at(line), *fields, **more)


def creating(name: str, *fields: FieldChange, line: int = 1, source: Source | None = None, **more: Any) -> Change:
    """Return the creation of a tag."""
    return changing(tag(name), Action.CREATE, source or at(line), *fields, **more)


def said(severity: Severity, code: str, message: str, **more: Any) -> Diagnostic:
    return Diagnostic(severity=severity, code=code, message=message, **more)


def plan_of(*changes: Change, unchanged: int = 41, requests: int = 7, **more: Any) -> Plan:
    """Return a plan with these changes and a summary that counts them; `base_url` and `team` are of its basis."""
    summary = Summary(
        **Counter(change.action.word for change in changes),
        unchanged=unchanged,
        keyword_adds=sum(len(c.keywords_added) for c in changes if c.action is not Action.CREATE),
        keyword_deletes=sum(len(c.keywords_deleted) for c in changes),
        metadata_deletes=sum(len(c.metadata_deleted) for c in changes),
        cascaded_tags=sum(c.cascade is not None for c in changes),
        kept=sum(n.kind == "kept" for n in more.get("notes", ())),
        requests=requests,
    )
    base_url, team = more.pop("base_url", "https://wisetime.com/connect/api"), more.pop("team", "Patents EU")
    basis = Basis("p-1", "2025-03-01T09:30:00Z", base_url, team, "l-1", "2ee3b2c")
    parts = {"gate": Gate(), "sweep": None, "notes": (), "diagnostics": (), **more}
    return Plan(basis=basis, summary=summary, changes=changes, stages=(), **parts)


def sweep_of(*known: str, first: bool = False) -> Sweep:
    return Sweep(known, (), Call("c9", "completeSyncSession", ()), first=first)


def empty() -> Plan:
    return plan_of(unchanged=43, requests=0)


OLD, TYPES, KEPT = "manifests/old.yaml", "manifests/types.yaml", "manifests/keep.yaml"
LABEL = field("label", "ACME", "ACME Corp.")
WORDS = field("keywords", ("acme", "a"), ("acme", "acme corp"))
CATEGORY_CHANGES = (
    changing(category("acme"), Action.UPDATE, at(3), LABEL, WORDS, previously="acme-ltd"),
    changing(category("new-client"), Action.CREATE, at(7), field("label", None, "New")),
    changing(category("old-client"), Action.DELETE, at(3, OLD)),
    changing(tag("OLD-1"), Action.DELETE, at(9, OLD), cascade=category("old-client")),
    changing(tag("OLD-2"), Action.DELETE, at(12, OLD), cascade=category("old-client")),
)

PLANNED = field("description", "Plan", "Plan and prepare for")
PLAN_IT = field("label", "Plan", "Plan it", FieldEffect.CREATE_ONLY)
DRAFT, ENABLED = field("label", None, "Draft and revise"), field("enableIfNew", None, True)
TYPE_CHANGES = (
    changing(activity_type("A101"), Action.UPDATE, at(2, TYPES), PLANNED, PLAN_IT),
    changing(activity_type("A103"), Action.CREATE, at(8, TYPES), DRAFT, ENABLED),
    changing(activity_type("A999"), Action.DELETE, at(4, TYPES)),
)

TAG_CHANGES = (
    creating(
        "ACME-0042",
        field("description", None, LONG),
        field("category", None, "acme"),
        line=12,
        keywords_added=("ACME-0042", "EP 1234567"),
        metadata_set={"Client": "ACME Corp."},
        previously="ACME-42",
    ),
    updating(
        "ACME-0043",
        field("description", LONG, LONG.replace("European", "Canadian")),
        field("modifiedTimestamp", 1_714_554_000_000, 1_714_554_000_500),
        field("assigneeExternalIds", ("jd", "kl"), ("kl", "mm")),
        keywords_added=("CA 7654321",),
        keywords_deleted=("EP 7654321",),
        metadata_set={"Client": "ACME Canada", "Office": 'the "new" one'},
        metadata_deleted=("Billing Group",),
        metadata_before={"Client": "ACME Corp.", "Billing Group": "billable"},
        source=Source("manifests/acme.yaml", 30, Row("data/matters.csv", 4711)),
    ),
    updating(
        "ACME-0044",
        field("visibility", "PRIVATE", "PUBLIC"),
        field("url", "https://pms.example.com/matters/4711", None),
        field("description", "Filed", "", FieldEffect.IGNORED),
        line=44,
    ),
    updating("ACME-0045", line=50, reason="sent again, since an earlier call failed or its outcome is unknown"),
)

TAG_REMOVALS = (
    changing(tag("ACME-0001"), Action.FORGET, at(60)),
    changing(
        tag("ACME-42"), Action.RETIRE, at(12), keywords_deleted=("ACME-42", "EP 1234567"), reason="renamed to ACME-0042"
    ),
    changing(tag("ACME-0002"), Action.DELETE, at(61), reason="closed, ticket 77"),
)

REASONS = (
    "1 of 3 categories deleted (limit 0)",
    "5 of 12 tags forgotten, retired or deleted (limit 25%)",
    "first sweep of this state: it deletes everything that this project does not know among the team's activity types",
)
TRIPPED = Gate(
    tripped=True,
    approve="12@0123456789abcdef0123",
    whole="12@0123456789abcdef0123",
    units=(
        Unit("category", "category/acme", 4, "4@aaaaaaaaaaaaaaaaaaaa", (("categories", 1), ("tags", 3)), asks=True),
        Unit("source", "data/matters.csv", 121, "121@bbbbbbbbbbbbbbbbbbbb", (("tags", 121),), True, (), 121, 171),
        Unit("manifest", "manifests/acme.yaml", 2, "2@cccccccccccccccccccc", (("tags", 2), ("keywords", 1)), asks=True),
        Unit("activity-types", "activity-types", 1, "1@dddddddddddddddddddd", (("activityTypes", 1),), asks=True),
        Unit("opened", "tag/SECRET", 1, "1@eeeeeeeeeeeeeeeeeeee", (("opened", 1),), asks=True),
        Unit("first-sweep", "first-sweep", 1, "1@ffffffffffffffffffff", (("sweep", 1),), asks=True),
        Unit("removed", "removed", 3, "3@00000000000000000000", (("tags", 3),), asks=True),
    ),
).with_approvals(())
TRIPPED = replace(TRIPPED, reasons=REASONS)

NOTES = (
    Note(tag("ACME-0044"), "ignored", "description: the service cannot clear it and keeps the old value", at(44)),
    Note(tag("KEEP-1"), "kept", "it is protected; to remove it, first apply `protect: false`", at(2, KEPT)),
)
HERE = {"file": "manifests/acme.yaml", "line": 4, "column": 16, "address": "category/acme"}
TOO_BROAD = said(Severity.WARNING, "keyword-too-broad", 'the keyword "a" would catch everyone\'s time', **HERE)


def everything() -> Plan:
    """Return a plan with every action on every kind of resource, a sweep, a tripped gate, notes and diagnostics."""
    changes = (*CATEGORY_CHANGES, *TYPE_CHANGES, *TAG_CHANGES, *TAG_REMOVALS)
    sweep = sweep_of("A999", first=True)
    return plan_of(*changes, sweep=sweep, gate=TRIPPED, notes=NOTES, diagnostics=(TOO_BROAD,))


def uniform() -> Plan:
    """Return a plan with 812 tags that change alike, 30 that change differently, and 14 new ones."""
    alike = [updating(f"ACME-{n:04}", field("visibility", "PUBLIC", "PRIVATE"), line=n) for n in range(1, 813)]
    own = [
        updating(f"OWN-{n}", field("description", f"number {n}", f"matter {n}"), source=at(n, "manifests/own.yaml"))
        for n in range(1, 31)
    ]
    new = [
        creating(
            f"NEW-{n}",
            *([field("category", None, ("acme", "bolt")[n % 2])] if n <= 11 else []),
            keywords_added=(f"NEW-{n}", f"EP {n}"),
            source=Source("manifests/new.yaml", 4, Row("data/new.csv", n + 1)),
        )
        for n in range(1, 15)
    ]
    return plan_of(*alike, *own, *new, base_url="sandbox", team=None)


def hostile() -> Plan:
    """Return a plan with hostile text in every place that holds text."""
    source = Source(f"manifests/{HOSTILE}.yaml", 3, Row(f"data/{HOSTILE}.csv", 7))
    units = (Unit("manifest", HOSTILE, 3, "3@abc", (("tags", 3),), asks=True),)
    gate = Gate(True, (), "3@abc", units=units, whole="3@abc").with_approvals(())
    lost: dict[str, Any] = {"keywords_deleted": (HOSTILE,), "metadata_deleted": (HOSTILE,), "reason": HOSTILE}
    edit, entries = field("description", HOSTILE, "`" + HOSTILE + "```"), {HOSTILE: HOSTILE}
    category_of = field("category", None, HOSTILE)
    return plan_of(
        changing(category(HOSTILE), Action.DELETE, source, reason=HOSTILE),
        changing(tag(HOSTILE + "1"), Action.DELETE, source, cascade=category(HOSTILE)),
        creating(HOSTILE + "2", category_of, source=source, keywords_added=(HOSTILE,), previously=HOSTILE),
        updating(HOSTILE + "3", edit, source=source, keywords_added=(HOSTILE,), metadata_set=entries, **lost),
        gate=replace(gate, reasons=(HOSTILE,)),
        notes=(Note(tag(HOSTILE), "kept", HOSTILE, source),),
        diagnostics=(said(Severity.ERROR, "bad-text", HOSTILE, file=HOSTILE, line=1, column=2, address=HOSTILE),),
        team=HOSTILE,
    )


def approved() -> Plan:
    gate = TRIPPED.with_approvals([Approval("12@0123456789abcdef0123", "syncengine.yaml", 14)])
    return plan_of(*TAG_REMOVALS, gate=gate)


def partly() -> Plan:
    """Return a plan with one unit approved in the project file, one approved by an option, and open ones.

    Beside it stands all that a plan's JSON can show and the plans of tests/contract do not.
    """
    at_hand = [Approval("4@aaaaaaaaaaaaaaaaaaaa", "syncengine.yaml", 14)]
    at_hand += [Approval("2@cccccccccccccccccccc", "--approve-deletes")]
    change = updating(
        "ACME-0044",
        field("url", "https://pms.example.com/matters/4711", None),
        field("modifiedTimestamp", 1_714_554_000_000, 1_714_554_000_500),
        field("description", "Filed", "", FieldEffect.IGNORED),
        field("createdTimestamp", 1_714_554_000_000, 1_714_554_000_500, FieldEffect.CREATE_ONLY),
        line=44,
        metadata_set={"Client": "ACME Canada"},
    )
    gate = TRIPPED.with_approvals(at_hand)
    return plan_of(change, gate=gate, notes=NOTES[:1], diagnostics=(TOO_BROAD,))


PLANS = {each.__name__: each for each in (empty, everything, uniform, hostile, approved, partly)}


def result(name: str, outcome: Outcome, error: CallError | None = None, line: int = 12) -> Result:
    return Result(tag(name), Action.UPDATE, outcome, at(line), error)


def report_of(*results: Result, session: Session | None = None, found: tuple[Diagnostic, ...] = ()) -> ReportFormat:
    """Return a report with these results and totals that count them."""
    counts = Counter(each.outcome.value for each in results)
    times, where = (1_790_000_000.0, 1_790_000_012.0), ("Patents EU", "prod", "c0ffee", "7ee5", "jd")
    approvals = (Approval("37@0123456789ab", "syncengine.yaml", 14),)
    report = Report(
        plan="p-1",
        status=RunStatus.COMPLETE if counts["applied"] == len(results) else RunStatus.INCOMPLETE,
        totals=Totals(**counts, requests=5, retries=1),
        session=session or Session(),
        results=results,
        diagnostics=found,
        circumstances=Circumstances(*times, *where, "https://ci.example.com/jobs/7", approvals),
    )
    return report_document(report)


def complete() -> ReportFormat:
    return report_of(*(result(f"ACME-{n}", Outcome.APPLIED) for n in range(3)), session=Session("s-7", "completed"))


def mixed() -> ReportFormat:
    """Return a report with applied changes and one change of each other outcome."""
    refused = CallError("url is not a URL", "upsertTags", 7, 200)
    return report_of(
        *(result(f"ACME-{n}", Outcome.APPLIED) for n in range(2)),
        result("ACME-0042", Outcome.FAILED, refused),
        result("ACME-0043", Outcome.SKIPPED, CallError("its category was not applied"), line=20),
        result("ACME-0044", Outcome.UNKNOWN, CallError("the connection broke off", "upsertTags"), line=30),
        session=Session("s-7", "cancelled", "activity-type/A103 was refused"),
        found=(said(Severity.WARNING, "only-404", "deleteTag always answered 404"),),
    )


def plan_limit() -> ReportFormat:
    """Return a report of 812 changes that the service refused with the same message."""
    error = CallError("the plan's tag limit is reached", "upsertTags", 3, 402)
    return report_of(*(result(f"ACME-{n:04}", Outcome.FAILED, error, n) for n in range(1, 813)))


def bitten() -> ReportFormat:
    """Return a report whose error messages from the service are hostile text."""
    error = CallError(HOSTILE, "upsertTags", 1, 400)
    return report_of(Result(tag(HOSTILE), Action.UPDATE, Outcome.FAILED, at(3, HOSTILE), error))


REPORTS = {"complete": complete, "mixed": mixed, "plan-limit": plan_limit, "bitten": bitten}

TYPO = {"file": "manifests/acme.yaml", "line": 2, "column": 5, "address": "tag/ACME-0042"}
FOUND = (
    said(Severity.ERROR, "unknown-field", "unknown field `descripton`; did you mean `description`?", **TYPO),
    said(Severity.WARNING, "source-slow", "the source took 40 s", file="manifests/a.yaml"),
    said(Severity.ERROR, "unreachable", "no route", address="tag/ACME-0043"),
)
