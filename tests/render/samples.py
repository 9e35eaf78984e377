"""Plans, reports and diagnostics built by hand, for every rendering to show."""

from __future__ import annotations

from collections import Counter

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


def plan_of(
    *changes: Change,
    unchanged: int = 41,
    requests: int = 7,
    gate: Gate | None = None,
    sweep: Sweep | None = None,
    notes: tuple[Note, ...] = (),
    diagnostics: tuple[Diagnostic, ...] = (),
    base_url: str = "https://wisetime.com/connect/api",
    team: str | None = "Patents EU",
) -> Plan:
    """Return a plan with these changes and a summary that counts them."""
    actions = Counter(change.action.word for change in changes)
    summary = Summary(
        **actions,
        unchanged=unchanged,
        keyword_adds=sum(len(c.keywords_added) for c in changes if c.action is not Action.CREATE),
        keyword_deletes=sum(len(c.keywords_deleted) for c in changes),
        metadata_deletes=sum(len(c.metadata_deleted) for c in changes),
        cascaded_tags=sum(c.cascade is not None for c in changes),
        kept=sum(n.kind == "kept" for n in notes),
        requests=requests,
    )
    return Plan(
        basis=Basis("p-1", "2025-03-01T09:30:00Z", base_url, team, "l-1", "2ee3b2c"),
        summary=summary,
        gate=gate or Gate(),
        sweep=sweep,
        changes=changes,
        notes=notes,
        stages=(),
        diagnostics=diagnostics,
    )


def sweep_of(*known: str, first: bool = False) -> Sweep:
    return Sweep(known, (), Call("c9", "completeSyncSession", ()), first=first)


def empty() -> Plan:
    return plan_of(unchanged=43, requests=0)


CATEGORY_CHANGES = (
    Change(
        key=category("acme"),
        action=Action.UPDATE,
        source=at(3),
        fields=(field("label", "ACME", "ACME Corp."), field("keywords", ("acme", "a"), ("acme", "acme corp"))),
        previously="acme-ltd",
    ),
    Change(key=category("new-client"), action=Action.CREATE, source=at(7), fields=(field("label", None, "New"),)),
    Change(key=category("old-client"), action=Action.DELETE, source=at(3, "manifests/old.yaml")),
    Change(key=tag("OLD-1"), action=Action.DELETE, source=at(9, "manifests/old.yaml"), cascade=category("old-client")),
    Change(key=tag("OLD-2"), action=Action.DELETE, source=at(12, "manifests/old.yaml"), cascade=category("old-client")),
)

TYPE_CHANGES = (
    Change(
        key=activity_type("A101"),
        action=Action.UPDATE,
        source=at(2, "manifests/types.yaml"),
        fields=(
            field("description", "Plan", "Plan and prepare for"),
            field("label", "Plan", "Plan it", FieldEffect.CREATE_ONLY),
        ),
    ),
    Change(
        key=activity_type("A103"),
        action=Action.CREATE,
        source=at(8, "manifests/types.yaml"),
        fields=(field("label", None, "Draft and revise"), field("enableIfNew", None, True)),
    ),
    Change(key=activity_type("A999"), action=Action.DELETE, source=at(4, "manifests/types.yaml")),
)

TAG_CHANGES = (
    Change(
        key=tag("ACME-0042"),
        action=Action.CREATE,
        source=at(12),
        fields=(field("description", None, LONG), field("category", None, "acme")),
        keywords_added=("ACME-0042", "EP 1234567"),
        metadata_set={"Client": "ACME Corp."},
        previously="ACME-42",
    ),
    Change(
        key=tag("ACME-0043"),
        action=Action.UPDATE,
        source=Source("manifests/acme.yaml", 30, Row("data/matters.csv", 4711)),
        fields=(
            field("description", LONG, LONG.replace("European", "Canadian")),
            field("modifiedTimestamp", 1_714_554_000_000, 1_714_554_000_500),
            field("assigneeExternalIds", ("jd", "kl"), ("kl", "mm")),
        ),
        keywords_added=("CA 7654321",),
        keywords_deleted=("EP 7654321",),
        metadata_set={"Client": "ACME Canada", "Office": 'the "new" one'},
        metadata_deleted=("Billing Group",),
        metadata_before={"Client": "ACME Corp.", "Billing Group": "billable"},
    ),
    Change(
        key=tag("ACME-0044"),
        action=Action.UPDATE,
        source=at(44),
        fields=(
            field("visibility", "PRIVATE", "PUBLIC"),
            field("url", "https://pms.example.com/matters/4711", None),
            field("description", "Filed", "", FieldEffect.IGNORED),
        ),
    ),
    Change(
        key=tag("ACME-0045"),
        action=Action.UPDATE,
        source=at(50),
        reason="sent again, since an earlier call failed or its outcome is unknown",
    ),
)

TAG_REMOVALS = (
    Change(key=tag("ACME-0001"), action=Action.FORGET, source=at(60)),
    Change(
        key=tag("ACME-42"),
        action=Action.RETIRE,
        source=at(12),
        keywords_deleted=("ACME-42", "EP 1234567"),
        reason="renamed to ACME-0042",
    ),
    Change(key=tag("ACME-0002"), action=Action.DELETE, source=at(61), reason="closed, ticket 77"),
)

HOSTILE_UNITS = (Unit("manifest", HOSTILE, 3, "3@abc", (("tags", 3),), asks=True),)
HOSTILE_GATE = Gate(True, (), "3@abc", units=HOSTILE_UNITS, whole="3@abc")
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
    Note(
        tag("KEEP-1"),
        "kept",
        "it is protected; to remove it, first apply `protect: false`",
        at(2, "manifests/keep.yaml"),
    ),
)

TOO_BROAD = (
    Diagnostic(
        severity=Severity.WARNING,
        code="keyword-too-broad",
        message='the keyword "a" would catch everyone\'s time',
        file="manifests/acme.yaml",
        line=4,
        column=16,
        address="category/acme",
    ),
)


def everything() -> Plan:
    """Return a plan with every action on every kind of resource, a sweep, a tripped gate, notes and diagnostics."""
    return plan_of(
        *CATEGORY_CHANGES,
        *TYPE_CHANGES,
        *TAG_CHANGES,
        *TAG_REMOVALS,
        sweep=sweep_of("A999", first=True),
        gate=TRIPPED,
        notes=NOTES,
        diagnostics=TOO_BROAD,
    )


def uniform() -> Plan:
    """Return a plan with 812 tags that change alike, 30 that change differently, and 50 new ones."""
    return plan_of(
        *(
            Change(
                key=tag(f"ACME-{number:04}"),
                action=Action.UPDATE,
                source=at(number),
                fields=(field("visibility", "PUBLIC", "PRIVATE"),),
            )
            for number in range(1, 813)
        ),
        *(
            Change(
                key=tag(f"OWN-{number}"),
                action=Action.UPDATE,
                source=at(number, "manifests/own.yaml"),
                fields=(field("description", f"number {number}", f"matter {number}"),),
            )
            for number in range(1, 31)
        ),
        *(
            Change(
                key=tag(f"NEW-{number}"),
                action=Action.CREATE,
                source=Source("manifests/new.yaml", 4, Row("data/new.csv", number + 1)),
                fields=(field("category", None, ("acme", "bolt")[number % 2]),) if number <= 40 else (),
                keywords_added=(f"NEW-{number}", f"EP {number}"),
            )
            for number in range(1, 51)
        ),
        base_url="sandbox",
        team=None,
    )


def hostile() -> Plan:
    """Return a plan with hostile text in every place that holds text."""
    source = Source(f"manifests/{HOSTILE}.yaml", 3, Row(f"data/{HOSTILE}.csv", 7))
    return plan_of(
        Change(key=category(HOSTILE), action=Action.DELETE, source=source, reason=HOSTILE),
        Change(key=tag(HOSTILE + "1"), action=Action.DELETE, source=source, cascade=category(HOSTILE)),
        Change(
            key=tag(HOSTILE + "2"),
            action=Action.CREATE,
            source=source,
            fields=(field("category", None, HOSTILE),),
            keywords_added=(HOSTILE,),
            previously=HOSTILE,
        ),
        Change(
            key=tag(HOSTILE + "3"),
            action=Action.UPDATE,
            source=source,
            fields=(field("description", HOSTILE, "`" + HOSTILE + "```"),),
            keywords_added=(HOSTILE,),
            keywords_deleted=(HOSTILE,),
            metadata_set={HOSTILE: HOSTILE},
            metadata_deleted=(HOSTILE,),
            reason=HOSTILE,
        ),
        gate=replace(HOSTILE_GATE.with_approvals(()), reasons=(HOSTILE,)),
        notes=(Note(tag(HOSTILE), "kept", HOSTILE, source),),
        diagnostics=(
            Diagnostic(
                severity=Severity.ERROR,
                code="bad-text",
                message=HOSTILE,
                file=HOSTILE,
                line=1,
                column=2,
                address=HOSTILE,
            ),
        ),
        team=HOSTILE,
    )


def approved() -> Plan:
    """Return a plan whose removals are approved by a line of the project file."""
    gate = TRIPPED.with_approvals([Approval("12@0123456789abcdef0123", "syncengine.yaml", 14)])
    return plan_of(*TAG_REMOVALS, gate=gate)


def partly() -> Plan:
    """Return a plan with one unit approved in the project file, one approved by an option, and open ones."""
    at_hand = [Approval("4@aaaaaaaaaaaaaaaaaaaa", "syncengine.yaml", 14)]
    at_hand += [Approval("2@cccccccccccccccccccc", "--approve-deletes")]
    return plan_of(*TAG_REMOVALS, gate=TRIPPED.with_approvals(at_hand))


PLANS = {
    "empty": empty,
    "everything": everything,
    "uniform": uniform,
    "hostile": hostile,
    "approved": approved,
    "partly": partly,
}


# --- reports ----------------------------------------------------------------------------------------------------------


def result(name: str, outcome: Outcome, error: CallError | None = None, line: int = 12) -> Result:
    return Result(tag(name), Action.UPDATE, outcome, at(line), error)


def report_of(
    *results: Result, session: Session | None = None, diagnostics: tuple[Diagnostic, ...] = ()
) -> ReportFormat:
    """Return a report with these results and totals that count them."""
    counts = Counter(each.outcome.value for each in results)
    troubled = len(results) - counts["applied"]
    report = Report(
        plan="p-1",
        status=RunStatus.INCOMPLETE if troubled else RunStatus.COMPLETE,
        totals=Totals(**counts, requests=5, retries=1),
        session=session or Session(),
        results=results,
        diagnostics=diagnostics,
        circumstances=Circumstances(
            started=1_790_000_000.0,
            ended=1_790_000_012.0,
            team="Patents EU",
            environment="prod",
            commit="c0ffee",
            tree="7ee5",
            actor="jd",
            job="https://ci.example.com/jobs/7",
            approvals=(Approval("37@0123456789ab", "syncengine.yaml", 14),),
        ),
    )
    return report_document(report)


def complete() -> ReportFormat:
    return report_of(*(result(f"ACME-{n}", Outcome.APPLIED) for n in range(3)), session=Session("s-7", "completed"))


def mixed() -> ReportFormat:
    """Return a report with applied changes and one change of each other outcome."""
    refused = CallError("url is not a URL", "upsertTags", 7, 200)
    return report_of(
        *(result(f"ACME-{n}", Outcome.APPLIED) for n in range(11)),
        result("ACME-0042", Outcome.FAILED, refused),
        result("ACME-0043", Outcome.SKIPPED, CallError("its category was not applied"), line=20),
        result("ACME-0044", Outcome.UNKNOWN, CallError("the connection broke off", "upsertTags"), line=30),
        session=Session("s-7", "cancelled", "activity-type/A103 was refused"),
        diagnostics=(Diagnostic(severity=Severity.WARNING, code="only-404", message="deleteTag always answered 404"),),
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

FOUND = (
    Diagnostic(
        severity=Severity.ERROR,
        code="unknown-field",
        message="unknown field `descripton`; did you mean `description`?",
        file="manifests/acme.yaml",
        line=2,
        column=5,
        address="tag/ACME-0042",
    ),
    Diagnostic(severity=Severity.WARNING, code="source-slow", message="the source took 40 s", file="manifests/a.yaml"),
    Diagnostic(severity=Severity.ERROR, code="unreachable", message="no route", address="tag/ACME-0043"),
)
