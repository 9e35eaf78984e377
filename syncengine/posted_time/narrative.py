"""The narrative of a group: a template of the project or ours, its ends of lines, its length. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from syncengine.posted_time.filters import FILTERS
from syncengine.posted_time.templates import Text, Variables

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
{% if connectorConfiguration.ADD_SUMMARY_TO_NARRATIVE != false %}
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
"""What is told where the project has no template.

The service's ADD_SUMMARY_TO_NARRATIVE (docs/interface.md 2.6) decides whether it ends in a summary; it does where the
connector was never registered, and where that setting is not named.
"""

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Narrative:
    """`newline` is written for each end of a line; longer than `max_length` is cut, and 0 is as long as it likes."""

    template: Text
    max_length: int = 0
    newline: str = "\n"

    def render(self, variables: Variables) -> str:
        """The narrative, without blank lines around it; RenderTrouble."""
        text = _LINE_END.sub("\n", self.template.render(variables)).strip().replace("\n", self.newline)
        return str(FILTERS["cut"](text, self.max_length)) if self.max_length else text
