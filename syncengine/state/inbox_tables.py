"""The tables of the inbox, in the state's database (docs/posted-time.md 1). Data only.

All times are seconds since the epoch. Groups are stored as the JSON that the service sent, until they are reduced.
"""

from __future__ import annotations

import sqlalchemy as sa

from syncengine.state.tables import METADATA, SERIAL

GROUPS = sa.Table(
    "inbox_groups",
    METADATA,
    sa.Column("group_id", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, comment="digest of the user's content in this revision"),
    sa.Column("mechanism", sa.Text, nullable=False),
    sa.Column("received", sa.Double, nullable=False),
    sa.Column("offered", sa.Double, nullable=False, index=True),
    sa.Column("offers", sa.Integer, nullable=False),
    sa.Column("user_name", sa.Text),
    sa.Column("user_keys", sa.Text, comment="JSON: every name and id of the user"),
    sa.Column("tag", sa.Text),
    sa.Column("body", sa.Text, comment="JSON as received, without the caller key; NULL once reduced"),
    sa.Column("outcome", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("external_id", sa.Text),
    sa.Column("decided", sa.Double),
    sa.Column("waiting", sa.Boolean, nullable=False, index=True, comment="the service has not accepted the verdict"),
    sa.Column("answered", sa.Double, comment="when the service last accepted a verdict"),
    sa.Column("asked", sa.Double, index=True, comment="when somebody asked for another delivery; NULL: none is due"),
    sa.Column("note", sa.Text, comment="why the group was given up, or the nature of its conflict"),
)

DELIVERIES = sa.Table(
    "inbox_deliveries",
    METADATA,
    sa.Column("group_id", sa.Text, primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),
    sa.Column("sink", sa.Text, primary_key=True),
    sa.Column("status", sa.Text, nullable=False, comment="attempting, accepted, refused, trouble, unknown, again"),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("first", sa.Double, nullable=False),
    sa.Column("last", sa.Double, nullable=False),
    sa.Column("external_id", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("memo", sa.Text, comment="JSON: the sink's own note for use after a crash"),
    sa.Index("inbox_deliveries_sink", "sink", "last"),
    comment="One row for each group, revision and sink.",
)

EVENTS = sa.Table(
    "inbox_events",
    METADATA,
    sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
    sa.Column("group_id", sa.Text, nullable=False, index=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("sink", sa.Text),
    sa.Column("outcome", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("external_id", sa.Text),
    sa.Column("detail", sa.Text),
    comment="The history of each group. Append-only until the group is reduced.",
)

MECHANISM = sa.Table(
    "posted_time_mechanism",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, comment="always 1"),
    sa.Column("mechanism", sa.Text, nullable=False),
    sa.Column("base_url", sa.Text, nullable=False),
    sa.Column("callback_url", sa.Text),
    sa.Column("key_digest", sa.Text),
    sa.Column("registered", sa.Double, nullable=False),
)

CONNECTOR = sa.Table(
    "connector_settings",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, comment="always 1"),
    sa.Column("settings", sa.Text, nullable=False, comment="JSON: connectorConfiguration of the last registration"),
    sa.Column("registered", sa.Double, nullable=False),
)

HEALTH = sa.Table(
    "health_report",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, comment="always 1"),
    sa.Column("reported", sa.Double, nullable=False),
    comment="A row: this connector reported a health failure and has not rescinded it.",
)

RESTS = sa.Table(
    "sink_rests",
    METADATA,
    sa.Column("receiver", sa.Text, primary_key=True, comment="digest of the name and the URL of an HTTP sink"),
    sa.Column("until", sa.Double, nullable=False),
    comment="When the receiver's Retry-After ends.",
)
