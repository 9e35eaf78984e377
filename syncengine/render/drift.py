"""Drift → text for the person at the terminal, Markdown for publication, and a JSON document; pure."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated

from msgspec import Meta

from syncengine.instants import instant
from syncengine.posted_time.drift import (
    FEWEST,
    Drift,
    DriftKind,
    ShownFinding,
    shown_count,
    shown_findings,
)
from syncengine.render.escape import cut, excerpts, quoted, visible
from syncengine.render.formats import OpenModel, one_of
from syncengine.render.manifest import section_yaml
from syncengine.render.markdown import LIMIT, as_markdown, code, fitted, prose, rendered
from syncengine.render.style import Look, Tone, lettered, painted
from syncengine.render.words import count_of, list_gaps, minute, number, when
from syncengine.resource import Kind

MEANING = {
    DriftKind.UNKNOWN: "used, but not in the state",
    DriftKind.RETIRED_IN_USE: "retired or deleted, but used since",
    DriftKind.DIFFERS: "shown with values other than those sent",
    DriftKind.UNUSED: "declared, but in no group",
}
MOST = 20
"""The number of tags of a kind that are listed without `-v`. If there is just one more, it is listed as well."""
TARGETS = 10  # more make a command that nobody reads before it is run
"""The number of tags that one printed command sends again."""
ORIGIN = "seen in posted time"
LOCAL = "Run `syncengine drift` outside CI to see the other names, values and times."
PROVES_NOTHING = "Drift is detected only in tags that appear in posted time."


# --- sentences


def headline(drift: Drift) -> str:
    """Return the number of findings of each kind: `Drift: 2 unknown, 1 differs`."""
    kinds = [f"{number(count)} {kind}" for kind in DriftKind if (count := drift.count(kind))]
    return f"Drift: {', '.join(kinds)}" if kinds else "No drift"


def coverage(drift: Drift, *, published: bool) -> str:
    groups = shown_count(drift.reading.groups, published=published)
    tags = f"{number(drift.seen)} of {count_of(drift.declared, 'tag')}"
    return f"{tags} seen in {_groups(groups)} since {_minute(drift.since)}"


def incompleteness(drift: Drift, *, published: bool) -> Iterator[str]:
    """Yield sentences about groups of posted time that could not be read or compared."""
    reading = drift.reading
    yield from list_gaps(reading.unreadable, reading.hidden)
    if reading.ignored:
        yield "the service ignores `submittedBefore`: only its newest groups could be read"
    if reading.endless:
        yield "the service's list does not end: reading stopped, and older groups were ignored"
    if drift.unlisted:
        groups = _groups(shown_count(drift.unlisted, published=published))
        yield f"{groups} with further undeclared tags, which are too many to list"
    if drift.unused_since is not None and not reading.is_whole:
        yield "unused tags are not listed, because groups are missing"


def reassert_commands(addresses: Sequence[str], options: str) -> Iterator[str]:
    """Yield shell commands that send tags again; `options` are the options that name the project.

    Addresses are quoted shell globs, in which `?` stands in for each letter that cannot be printed.
    """
    globs = ("".join(letter if letter.isprintable() else "?" for letter in glob.escape(each)) for each in addresses)
    targets = [f"--target {shlex.quote(each)}" for each in globs]
    for start in range(0, len(targets), TARGETS):
        yield f"syncengine apply{options} --reassert {' '.join(targets[start : start + TARGETS])}"


# --- text


def drift_text(drift: Drift, look: Look, *, published: bool, options: str) -> str:
    """Return the findings kind by kind, each kind with its cure unless the output is `published`."""
    findings = shown_findings(drift, published=published)
    lines = [painted(f"{headline(drift)}.", Tone.HEADING, look), f"{coverage(drift, published=published)}."]
    for kind, of_kind in groupby(findings, lambda finding: finding.kind):
        lines += ["", *_section(drift, kind, list(of_kind), look)]
        if not published:
            lines += _cure(kind, [each for each in findings if each.kind is kind], look, options)
    lines += ["", *([LOCAL] if published and findings else []), PROVES_NOTHING]
    return lettered("\n".join(lines) + "\n", look)


def _section(drift: Drift, kind: DriftKind, findings: Sequence[ShownFinding], look: Look) -> Iterator[str]:
    since = f" since {_minute(drift.unused_since)}" if kind is DriftKind.UNUSED else ""
    yield painted(f"{kind}: {MEANING[kind]}{since}", Tone.UPDATE, look)
    public = [finding for finding in findings if finding.address is not None]
    few = public if look.verbose or len(public) <= MOST + 1 else public[:MOST]
    for finding in few:
        yield from _lines(finding)
    if rest := len(public) - len(few):
        yield f"  … and {number(rest)} more (-v lists all)"
    if len(findings) > len(public):
        yield f"  {_nameless(drift, kind, findings)}"


def _nameless(drift: Drift, kind: DriftKind, findings: Sequence[ShownFinding]) -> str:
    """Return words that count the tags of a kind whose names may not be published."""
    tags = f"{count_of(sum(finding.address is None for finding in findings), 'tag')} that may not be named in public"
    groups = sum(each.groups for each in drift.findings if each.kind is kind and not each.is_public)
    return tags if kind is DriftKind.UNUSED else f"{tags}: {_groups(shown_count(groups, published=True))}"


def _lines(finding: ShownFinding) -> Iterator[str]:
    about = [f"{_groups(finding.groups)}" if finding.kind is not DriftKind.UNUSED else ""]
    about += [f"last {minute(instant(finding.last) or '')}"] if finding.last is not None else []
    if finding.kind is DriftKind.RETIRED_IN_USE and finding.recorded:
        about.append(str(finding.recorded.get("status")))
    about += ["a newer group shows it as recorded"] if finding.mended else []
    about += [f"differs from {finding.similar} only in case or Unicode form"] if finding.similar else []
    words = ", ".join(filter(None, about))
    yield visible(f"  {finding.address}{'  ' if words else ''}{words}")
    for name, before in (finding.recorded or {}).items() if finding.kind is DriftKind.DIFFERS else ():
        after = (finding.seen or {}).get(name)
        if before is None or after is None:
            yield f"    {name}"
        else:
            old, new = excerpts(before, after)
            yield f"    {name}: {quoted(old)} → {quoted(new)}"


def _groups(groups: int | str) -> str:
    return count_of(groups, "group") if isinstance(groups, int) else f"{groups} groups"


def _cure(kind: DriftKind, findings: Sequence[ShownFinding], look: Look, options: str) -> Iterator[str]:
    few = findings if look.verbose or len(findings) <= MOST + 1 else findings[:MOST]
    if kind is DriftKind.UNKNOWN:
        items = []
        for finding in few:  # as a manifest would declare them, with their values from posted time
            seen = {name: value for name, value in (finding.seen or {}).items() if value}
            names = ["description", "externalId", *(["path"] if seen.get("path") != "/" else [])]
            own = {name: seen[name] for name in names if name in seen}
            items.append({"name": (finding.address or "").partition("/")[2], **own})
        yield from ("", "To declare the tags that are yours and in no manifest yet, paste them into one:", "")
        yield from section_yaml(Kind.TAG, items, ORIGIN).splitlines()
    elif kind is DriftKind.DIFFERS:
        addresses = [finding.address for finding in few if finding.address is not None]
        yield from ("", "To send the declared values again:", "")
        yield from (f"  {command}" for command in reassert_commands(addresses, options))
    elif kind is DriftKind.RETIRED_IN_USE:
        yield from ("", "To bring a tag back, declare it again; otherwise ask its users to choose another tag.")


# --- Markdown


def drift_markdown(drift: Drift, options: str) -> str:
    """Return counts, and names that may be published, for the summary of a CI job."""
    findings = shown_findings(drift, published=True)
    tables = []
    for kind, found in groupby(findings, lambda finding: finding.kind):
        of_kind = list(found)
        named = []
        for each in of_kind:
            if each.address is not None:  # it may be named
                count = each.groups if isinstance(each.groups, str) else number(each.groups)
                cells = (
                    code(cut(each.address, 200)).replace("|", "\\|"),
                    "" if kind is DriftKind.UNUSED else _public(count),
                )
                named.append(as_markdown(f"| {' | '.join((*cells, ', '.join(map(code, each.recorded or ()))))} |"))
        is_whole = len(named) == len(of_kind)
        rest = [] if is_whole else [as_markdown(f"| {_public(_nameless(drift, kind, of_kind))} | | |")]
        tables.append((f"{kind}: {MEANING[kind]}", named, rest))
    addresses = [each.address for each in findings if each.kind is DriftKind.DIFFERS and each.address is not None]
    return fitted(
        lambda most: rendered(
            "drift.markdown.j2",
            headline=headline(drift),
            coverage=as_markdown(_public(coverage(drift, published=True))),
            incompleteness=list(incompleteness(drift, published=True)),
            kinds=[{"title": title, "rows": (*rows[:most], *rest)} for title, rows, rest in tables],
            commands=list(reassert_commands(addresses, options))[:most],
            ending=" ".join([*([LOCAL] if findings else []), PROVES_NOTHING]),
            is_short=any(len(rows) > most for _, rows, _ in tables),
        ),
        LIMIT,
        len,
    )


def _public(text: str) -> str:
    """Return a sentence as Markdown, but keep `<5` unescaped, because job logs show the text as well."""
    return prose(text).replace(f"&lt;{FEWEST}", f"<{FEWEST}")


# --- JSON

Count = Annotated[int, Meta(ge=0)]
Groups = Annotated[int | str, "The number of groups; published as `<5` if fewer than 5."]
Values = Mapping[str, str | None]


class DriftCoverage(OpenModel, frozen=True):
    """The part of the tags that was seen; drift is detected only in tags that appear in posted time."""

    tags: Annotated[Count, "The number of declared tags in the state."]
    seen: Annotated[Count, "The number of these tags that a group shows."]
    groups: Annotated[Groups, "Groups of posted time that were read."]
    complete: Annotated[bool, "Whether all groups of the period were read."]
    unreadable: Annotated[Count, "Items of the list that are not a group with a time of submission."]
    hidden: Annotated[list[str], "Instants that fill a whole page of the list, so that further groups may be missing."]
    ignored: Annotated[bool, "Whether the service ignored `submittedBefore`, listing only its newest groups."]
    endless: Annotated[bool, "Whether reading stopped because the list did not end."]
    unlisted: Annotated[Groups, "The number of groups with undeclared tags that are not among the findings."]


class DriftItem(OpenModel, frozen=True):
    """The drift of one tag."""

    kind: Annotated[str, one_of(*DriftKind)]
    address: Annotated[str | None, "The tag as `tag/NAME`; null if the name must not be published."]
    groups: Annotated[Groups, "Groups that show the tag."]
    recorded: Annotated[
        Values | None,
        "The recorded values: `status` of a removed tag, or the fields that differ. The values are null in published"
        " output.",
    ]
    seen: Annotated[Values | None, "The newest values in posted time; null in published output."]
    last: Annotated[str | None, "The time when the newest group was submitted; null in published output."]
    mended: Annotated[bool, "Whether a newer group shows the tag as recorded."]
    similar: Annotated[str | None, "A declared tag whose name differs only in case or Unicode form; null if none."]


class DriftFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.drift/v1"):
    """The document of `drift --format json`."""

    published: Annotated[bool, "Whether names and values that may not be published are left out, as in CI."]
    since: Annotated[str, "The time since which submitted groups were read."]
    unused_since: Annotated[str | None, "Tags without a group since then are unused; null without `--unused`."]
    coverage: DriftCoverage
    summary: Annotated[dict[str, int], "The number of tags by kind of finding."]
    findings: list[DriftItem]


def drift_document(drift: Drift, *, published: bool) -> DriftFormat:
    reading, findings = drift.reading, []
    for each in shown_findings(drift, published=published):
        last = None if each.last is None else instant(each.last)
        values = (each.recorded, each.seen, last, each.mended, each.similar)
        findings.append(DriftItem(each.kind, each.address, each.groups, *values))
    coverage = DriftCoverage(
        drift.declared,
        drift.seen,
        shown_count(reading.groups, published=published),
        reading.is_complete,
        reading.unreadable,
        [instant(at) or "" for at in reading.hidden],
        reading.ignored,
        reading.endless,
        shown_count(drift.unlisted, published=published),
    )
    counts = {kind.value: drift.count(kind) for kind in DriftKind}
    return DriftFormat(published, when(drift.since), when(drift.unused_since), coverage, counts, findings)


def _minute(seconds: float | None) -> str:
    return minute(when(seconds) or "")
