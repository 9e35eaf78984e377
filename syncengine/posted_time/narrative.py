"""Render the narrative of a group from the project's or the built-in template. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from syncengine.posted_time.templates import FILTERS, Text, Variables

TEMPLATE = """\
{% if group.description %}
{{ group.description }}

{% endif %}
{% if group.narrativeType != "NARRATIVE_ONLY" %}
{% for row in rows %}
{% if row.start %}{{ row.start | time }} {% endif %}{{ row.activity }}
{%- if row.description %}: {{ row.description }}{% endif %} ({{ row.durationSecs | duration }})
{% endfor %}
{% if rows %}

{% endif %}
{% endif %}
{% if summary %}
{% if tags | length > 1 %}
Tags: {{ tags | map(attribute="name") | join(", ") }}
{% endif %}
Worked: {{ duration.workedSeconds | duration }}
{% if duration.totalSeconds != duration.workedSeconds %}
Posted: {{ duration.totalSeconds | duration }}
{% endif %}
{% if duration.weightingPercent and duration.weightingPercent < 100 %}
Weighted: {{ duration.weightingPercent }}%
{% endif %}
{% if duration.seconds != duration.totalSeconds %}
Charged: {{ duration.seconds | duration }}
{% endif %}
{% endif %}
"""
"""The narrative template of projects without one of their own: what the person wrote and did, and a summary if it is
wanted.
"""

SUMMARY_SETTING = "ADD_SUMMARY_TO_NARRATIVE"
"""The service's setting by which the narrative ends with a summary, unless the project file says whether it does."""
_YES = ("true", "yes", "on", "1")

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Narrative:
    """A narrative template, its line ending, and its longest text in characters; a `max_length` of 0 means no limit.

    `summary`: whether the built-in template adds a summary of the durations; `None` leaves that to the service.
    """

    template: Text
    max_length: int = 0
    newline: str = "\n"
    summary: bool | None = None

    def render(self, variables: Variables) -> str:
        """Return the narrative without surrounding whitespace. Raise `RenderTrouble` when the template fails."""
        summary = self.summary
        if summary is None:  # settings may be texts
            summary = str(variables["connectorConfiguration"][SUMMARY_SETTING]).strip().lower() in _YES
        seen = {**variables, "summary": summary}
        text = _LINE_END.sub("\n", self.template.render(seen)).strip().replace("\n", self.newline)
        return str(FILTERS["cut"](text, self.max_length)) if self.max_length else text
