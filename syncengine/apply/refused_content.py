"""Compute the digest of the content that a rejected item asks for, which identifies it in a quarantine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from syncengine.effects import Effect
from syncengine.plan.calls import Item
from syncengine.plan.diff import Action
from syncengine.plan.model import Plan
from syncengine.resource import Body, Key, Status
from syncengine.state.refusals import REMOVAL, content_of

WAYS: Mapping[Status | None, str] = {Status.DELETED: "delete", Status.RETIRED: "retire"}


class RefusedContent:
    """The contents that one plan asks for; looked up when the first item is rejected."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __call__(self, item: Item) -> str:
        effect = item.effects[0]
        whole = effect if effect.whole else self._upserts.get(effect.key)
        return _content(whole) if whole is not None else removal_by(effect)

    def of(self, key: Key, action: Action) -> str:
        """Return the content that a change asks for."""
        whole = self._upserts.get(key)
        return _content(whole) if whole is not None else REMOVAL + action.word

    @cached_property
    def _upserts(self) -> Mapping[Key, Effect]:
        """The upserts of all resources that are sent, also of tags of which single calls send a part."""
        upserts = {key: item.effects[0] for key, item in self._plan.wholes.items()}
        items = (item for stage in self._plan.stages for call in stage.calls for item in call.items)
        return upserts | {item.key: item.effects[0] for item in items if item.effects[0].whole}


def _content(effect: Effect) -> str:
    return content_of(Body(effect.fields, effect.keywords, effect.metadata))


def removal_by(effect: Effect) -> str:
    """Return the content that stands for a removal."""
    return REMOVAL + WAYS.get(effect.status, "")
