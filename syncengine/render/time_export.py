"""Deliveries that sinks took → a table in CSV, and a JSON document; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from syncengine.posted_time.csv_table import record
from syncengine.posted_time.export import ExportedDelivery
from syncengine.render.json import Document
from syncengine.render.schemas.posted_time import ExportedItem, TimeExportFormat, document
from syncengine.render.words import when

COLUMNS: Mapping[str, Callable[[ExportedDelivery], Any]] = {
    "delivered": lambda row: when(row.delivered),
    "groupId": lambda row: row.group_id,
    "sink": lambda row: row.sink,
    "externalId": lambda row: row.external_id,
    "date": lambda row: row.date,
    "start": lambda row: row.start,
    "tag": lambda row: row.tag,
    "user": lambda row: row.user,
    "email": lambda row: row.email,
    "activityType": lambda row: row.activity_type,
    "seconds": lambda row: row.seconds,
    "hours": lambda row: row.hours,
    "postedSeconds": lambda row: row.posted_seconds,
    "description": lambda row: row.description,
    "outcome": lambda row: row.outcome and row.outcome.value,
    "revision": lambda row: row.revision,
}
"""The columns of the table, in order."""


def export_csv(rows: Sequence[ExportedDelivery]) -> str:
    """Return a header and one record for each delivery."""
    return record(COLUMNS) + "".join(record(value(row) for value in COLUMNS.values()) for row in rows)


def export_document(rows: Sequence[ExportedDelivery]) -> Document:
    """Return the JSON document of `time export`, with texts and groups as the service sent them."""
    same = ("group_id", "sink", "key", "revision", "external_id", "outcome", "tag", "user", "email", "activity_type")
    facts = (*same, "date", "start", "seconds", "hours", "posted_seconds", "description", "group")
    items = [
        ExportedItem(**{name: getattr(row, name) for name in facts}, delivered=when(row.delivered)) for row in rows
    ]
    return document(TimeExportFormat(format="syncengine.time-export/v1", deliveries=items))
