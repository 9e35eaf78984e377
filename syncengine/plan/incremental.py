"""Plan only the changes since the last settled plan, if that is enough. Reads files and the cache.

Settled manifests and unchanged rows need no plan. So a plan of the tags whose declaration changed is the plan of
everything, as long as the changes cannot affect other resources: no category or activity type is added, removed or
changed, no rename and no line of `removed` is involved, and no name or keyword meets one in another file
(docs/planning.md 2.8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from syncengine.document.diagnostics import in_order
from syncengine.errors import Severity
from syncengine.manifest.cache import ManifestCache, Settled
from syncengine.manifest.desired import Desired, ManifestSet
from syncengine.manifest.load import read_one
from syncengine.manifest.reading import ReadFile
from syncengine.manifest.sources.records import SourceUse
from syncengine.manifest.visibility_lints import visible_pairs
from syncengine.plan.build import plan
from syncengine.plan.gate import Gate, StateRecords
from syncengine.plan.judgement import judgement_of
from syncengine.plan.model import Basis, Options, Plan, PlanInputs, Summary
from syncengine.plan.provenance import template_of
from syncengine.plan.shrinking import SHRINKS
from syncengine.project.load import levelled
from syncengine.resource import Key, Kind, Resource
from syncengine.state.info import StateReader

MOST = 0.1
"""The share of changed files above which everything is compared."""
FEW = 50
"""The number of changed files up to which their share does not matter."""


def plan_since(
    baseline: Settled,
    manifests: ManifestSet,
    digests: Sequence[str],
    cache: ManifestCache,
    rows: StateReader,
    how: tuple[Options, Basis],
    records: StateRecords,
) -> tuple[Plan, Settled] | None:
    """Plan the changes of the files since `baseline`, or return `None` when everything must be compared.

    The second value are the manifests that are settled once the plan is applied. `digests` are the SHA-256 digests of
    the files. `records`, with the totals of all rows, are for the gate.
    """
    entries = cache.entries(manifests.files, digests)
    names = {name for name, entry in entries.items() if baseline.files.get(name) != entry}
    missing = baseline.files.keys() - entries.keys()
    if baseline.shares and not _stand_as_before(baseline.files, entries):
        return None
    if not names and not missing:
        return _nothing(baseline, *how), baseline
    if len(names) + len(missing) > max(FEW, MOST * len(baseline.files)):
        return None
    before = list(_read_before(baseline, {*names, *missing}, cache))
    if len(before) < len(missing) + len(names & baseline.files.keys()):
        return None
    after = _read_after(manifests, names, entries, cache, before)
    if after is None:
        return None
    shrinks = _is_made_less(before, after) or _sources_shrink(before, after, how[1].sources)
    window = None if shrinks else _window(before, after)
    if window is None or not _keeps_to_itself(before, after, window, baseline, cache, names | missing):
        return None
    earlier = [d for d in baseline.diagnostics if d.file not in names and d.file not in missing]
    fresh = levelled((d for read in after for d in read.reading.found), manifests.levels)
    if any(d.severity is Severity.ERROR for d in fresh):
        return None
    now = replace(
        baseline,
        files=entries,
        desired=baseline.desired + len(window.wanted) - window.before,
        diagnostics=tuple(in_order([*earlier, *fresh])),
        sources={**baseline.sources, **_rows_of_sources(after)},
        generation=None,
        totals=None,
    )
    recorded = rows.get(window.keys)
    desired = Desired(window.wanted, {}, now.diagnostics)
    others = now.desired - len(window.wanted)
    partial = plan(desired, {key: recorded[key] for key in sorted(recorded)}, *how, records, others)
    return replace(partial, sources=now.sources, is_whole=True), now


def _stand_as_before(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether the files kept their order, which decides at which of two conflicting tags a finding appears."""
    return [name for name in before if name in now] == [name for name in now if name in before]


def _nothing(baseline: Settled, options: Options, basis: Basis) -> Plan:
    """Return the plan when nothing changed. Only rules for the plan as a whole can find fault with it."""
    summary = Summary(unchanged=baseline.desired)
    found = (*baseline.diagnostics, *judgement_of(options.rule_set, (), {}, summary).diagnostics)
    inputs = PlanInputs(options.rules)
    return Plan(
        basis,
        summary,
        Gate(),
        None,
        (),
        (),
        (),
        diagnostics=found,
        sources=baseline.sources,
        is_whole=True,
        inputs=inputs,
    )


def _read_after(
    manifests: ManifestSet,
    names: Collection[str],
    entries: Mapping[str, str],
    cache: ManifestCache,
    before: Iterable[ReadFile],
) -> list[ReadFile] | None:
    """Return the current content of the changed files, or `None` if a file cannot be read or has just changed again."""
    files = [file for file in manifests.files if file.name in names]
    contents = {read.reading.file: read.packed for read in before}
    fresh = [read_one(file, manifests.defaults, contents.get(file.name)) for file in files]
    now = cache.entries(files, [read.sha256 for read in fresh])
    if any(entries[name] != now[name] for name in now) or not all(read.sha256 for read in fresh):
        return None
    cache.keep(fresh)
    return fresh


def _read_before(baseline: Settled, names: Iterable[str], cache: ManifestCache) -> Iterator[ReadFile]:
    """Yield the previous content of the changed files, except of files that are no longer in the cache."""
    for name in sorted(names):
        read = cache.get(baseline.files[name]) if name in baseline.files else None
        if read is not None:
            yield read


def _sources_shrink(before: Iterable[ReadFile], after: Iterable[ReadFile], had: Mapping[str, int]) -> bool:
    """Return whether a source is no longer used, is empty, or has lost enough rows to need an approval."""
    now = _rows_of_sources(after)
    if not now.keys() >= _rows_of_sources(before).keys() or any(use.is_empty for use in _uses(after)):
        return True
    return any(SHRINKS.is_exceeded(had.get(identity, 0) - rows, had.get(identity, 0)) for identity, rows in now.items())


def _rows_of_sources(reads: Iterable[ReadFile]) -> dict[str, int]:
    return {use.identity: use.rows for use in _uses(reads)}


def _uses(reads: Iterable[ReadFile]) -> Iterator[SourceUse]:
    return (use for read in reads for use in read.reading.sources)


def _is_made_less(before: Sequence[ReadFile], after: Sequence[ReadFile]) -> bool:
    """Return whether more than one resource made from data is removed (docs/planning.md 2.7).

    Whether that is too large a share can only be told from all rows of a template in the state, which are not read
    here.
    """
    remaining = {resource.key for read in after for resource in read.reading.resources}
    templated = (r for read in before for r in read.reading.resources if template_of(r.source))
    return sum(resource.key not in remaining for resource in templated) > 1


class ChangedTags(NamedTuple):
    """The changed declarations: the desired resources, the keys of all, and how many were declared `before`."""

    wanted: Mapping[Key, Resource]
    keys: tuple[Key, ...]
    before: int


def _window(before: Sequence[ReadFile], after: Sequence[ReadFile]) -> ChangedTags | None:
    """Return the tags that changed, or `None` if anything but the bodies of tags changed."""
    old, new = _resources(before), _resources(after)
    if old is None or new is None:
        return None
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    if not all(key.kind is Kind.TAG or _only_moved(old.get(key), new.get(key)) for key in keys):
        return None
    desired = {key: new[key] for key in new if old.get(key) != new[key]}
    return ChangedTags(desired, tuple(keys), sum(key in old for key in keys))


def _resources(reads: Iterable[ReadFile]) -> dict[Key, Resource] | None:
    """Return the resources that the files declare, in order, or `None` if the files contain anything else."""
    resources: dict[Key, Resource] = {}
    for read in reads:
        reading = read.reading
        if not reading.whole or reading.removed or reading.default_categories:
            return None
        for resource in reading.resources:
            if not resource.sound or resource.previously or resource.key in resources:
                return None
            resources[resource.key] = resource
    return resources


def _only_moved(old: Resource | None, new: Resource | None) -> bool:
    return old is not None and new is not None and (old.body, old.protect) == (new.body, new.protect)


# --- other files


def _keeps_to_itself(
    before: Sequence[ReadFile],
    after: Sequence[ReadFile],
    window: ChangedTags,
    baseline: Settled,
    cache: ManifestCache,
    names: set[str],
) -> bool:
    """Return whether the changes have no relation to other files that they did not have before."""
    categories = {r.body.fields.get("category") for r in window.wanted.values() if r.key.kind is Kind.TAG}
    if not categories <= {None, "", *baseline.categories}:
        return False
    if not _is_seen_as_before(before, after, baseline, names):
        return False
    others = [entry for name, entry in baseline.files.items() if name not in names]
    if not _contains_nothing(before, after, baseline, cache, others):
        return False
    for column in ("names", "words"):
        was, now = _lines(column, before), _lines(column, after)
        if len(set(now)) < len(now) or len(set(was)) < len(was):
            return False
        if _meets(column, was, now, baseline, cache, others):
            return False
    return True


def _is_seen_as_before(
    before: Sequence[ReadFile], after: Sequence[ReadFile], baseline: Settled, names: set[str]
) -> bool:
    """Return whether no category starts or stops containing both private and public tags."""
    was, now = (visible_pairs(r for read in reads for r in read.reading.resources) for reads in (before, after))
    files = [d.file for d in baseline.diagnostics if d.code == "private-in-shared-category"]
    return was == now if files and names.isdisjoint(files) else now <= was and not files


def _contains_nothing(
    before: Sequence[ReadFile],
    after: Sequence[ReadFile],
    baseline: Settled,
    cache: ManifestCache,
    others: Sequence[str],
) -> bool:
    """Return whether no changed keyword is part of another keyword or contains one."""
    for column, other in (("words", "parts"), ("parts", "words")):
        was, now = _lines(column, before), _lines(column, after)
        if not set(now).isdisjoint(_lines(other, after)) or not set(was).isdisjoint(_lines(other, before)):
            return False
        if _meets(other, was, now, baseline, cache, others):
            return False
    return True


def _meets(
    column: str,
    was: Iterable[str],
    now: Iterable[str],
    baseline: Settled,
    cache: ManifestCache,
    others: Sequence[str],
) -> bool:
    """Return whether any changed line occurs, or may occur, in this column of other files."""
    # A warning about two tags names the places of both, so it changes when either tag has moved.
    lines = {*was, *now} if baseline.shares else set(now).difference(was)
    return bool(lines) and not _is_apart(lines, cache.texts(column, others), len(others))


def _lines(column: str, reads: Iterable[ReadFile]) -> list[str]:
    return [line for read in reads if (text := getattr(read, column)) for line in text.split("\n")]


def _is_apart(lines: set[str], texts: Iterable[str], files: int) -> bool:
    """Return whether no text contains any of the lines. Return `False` also if there are fewer texts than `files`."""
    met = 0
    for text in texts:
        if not lines.isdisjoint(text.split("\n")):
            return False
        met += 1
    return met == files
