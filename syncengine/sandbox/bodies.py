"""What a rule gets and answers: requests with their bodies, one model an operation, answers and refusals. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from syncengine.sandbox.store import Json, Store


class ApiError(Exception):
    """The refusal of a request, or of one item of a batch: the HTTP status and the body to answer."""

    def __init__(self, status: int, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.body = {"message": message} if body is None else body


@dataclass(frozen=True, slots=True)
class RuleRequest:
    """A request to a rule. `now` is in milliseconds; `failing` maps items that a fault makes fail to their errors."""

    body: Json
    now: int
    new_id: Callable[[], str]
    failing: Mapping[int, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


class RuleAnswer(NamedTuple):
    status: int
    body: Any


Rule = Callable[[Store, RuleRequest], RuleAnswer]
DONE = RuleAnswer(200, {})


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("missing", "blank")  # told like a field that is not there
    return text


# The description of a type is what a message calls it. Null means "not given" wherever a field may be left out.
Name = Annotated[str, AfterValidator(_not_blank), Field(description="a string")]
Text = Annotated[str | None, Field(description="a string")]
Texts = Annotated[list[str] | None, Field(description="an array of strings")]
TextMap = Annotated[dict[str, str] | None, Field(description="an object of strings")]
Flag = Annotated[bool | None, Field(description="true or false")]
Int64 = Annotated[int | None, Field(ge=-(2**63), lt=2**63, description="an integer of 64 bits")]
Count = Annotated[int | None, Field(ge=0, description="a non-negative integer")]
# At most 30,000 years, so that a time of them fits into a row.
Seconds = Annotated[float | None, Field(ge=0, le=10**12, description="a number of seconds")]
Object = Annotated[Json | None, Field(description="an object")]
Array = Annotated[list[Any] | None, Field(description="an array")]


class RequestBody(BaseModel):
    """A JSON object by the interface's names. Unknown fields are ignored (docs/interface.md)."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel, validate_by_name=True)

    def values(self, *left_out: str) -> Json:
        """Return the values that were given, by the interface's names. Nulls inside them stay."""
        fields = type(self).model_fields
        pairs = ((name, value) for name, value in self if value is not None and name not in left_out)
        return {str(fields[name].alias): value for name, value in pairs}


class KnownBody(RequestBody):
    """An object whose unknown fields are refused: they are misspelt, and the request would prove nothing."""

    model_config = ConfigDict(extra="forbid")


class TagBody(RequestBody):
    name: Name
    description: Text = None
    tag_category_id: Text = None
    path: Text = None
    managed_by: Text = None
    external_id: Text = None
    default_activity_type_code: Text = None
    url: Text = None
    visibility: Annotated[Literal["PUBLIC", "PRIVATE"] | None, Field(description="PUBLIC or PRIVATE")] = None
    assignee_external_ids: Texts = None
    created_timestamp: Int64 = None
    modified_timestamp: Int64 = None
    closed_timestamp: Int64 = None
    exclude_tag_name_keyword: Flag = None
    additional_keywords: Texts = None
    metadata: TextMap = None


class NewKeywords(RequestBody):
    tag_name: Name
    external_id: Text = None
    additional_keywords: Annotated[list[str], Field(description="an array of strings")]


class Keyword(RequestBody):
    tag_name: Name
    keyword: Name


class MetadataNames(RequestBody):
    tag_name: Name
    metadata_names: Annotated[list[str], Field(description="an array of strings")]


class TagName(RequestBody):
    name: Name


class CategoryBody(RequestBody):
    id: Text = None
    external_id: Text = None
    label: Text = None
    description: Text = None
    keywords: Texts = None


class CategoryName(RequestBody):
    external_id: Name


class ActivityTypeBody(RequestBody):
    code: Name
    label: Name
    description: Text = None
    enable_if_new: Flag = None
    reenable_if_archived: Flag = None


class SessionId(RequestBody):
    sync_session_id: Text = None


Status = Literal["SUCCESS", "FAILURE", "RETRIABLE_FAILURE"]


class StatusUpdate(RequestBody):
    time_group_id: Name
    status: Annotated[Status, Field(description=f"one of {', '.join(get_args(Status))}")]
    message: Text = None
    external_id: Text = None


class Webhook(RequestBody):
    callback_url: Name
    caller_key: Text = None


class Registration(RequestBody):
    environment: Object = None
    connector_type: Text = None
    connector_version: Text = None
    connector_library_version: Text = None
    client_timestamp: Int64 = None
    client_time_zone_offset: Text = None


ErrorType = Literal[
    "UNKNOWN",
    "TARGET_UNREACHABLE",
    "TARGET_AUTH_FAILURE",
    "TARGET_PERMISSIONS_FAILURE",
    "TARGET_SUBSCRIPTION_FAILURE",
]


class HealthReport(RequestBody):
    error_type: Annotated[ErrorType | None, Field(description=f"one of {', '.join(get_args(ErrorType))}")] = None
    user_error_message: Text = None


B = TypeVar("B", bound=RequestBody)


def read(model: type[B], item: Any) -> B:
    """Return a JSON object as a body, or raise `ApiError` with a sentence about its first problem."""
    if not isinstance(item, dict):
        raise ApiError(400, "expected an object")
    try:
        return model.model_validate(item)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    unknown = [str(each["loc"][0]) for each in problems if each["type"] == "extra_forbidden"]
    if len(unknown) == len(problems):
        raise ApiError(400, f"unknown {'field' if len(unknown) == 1 else 'fields'}: {', '.join(sorted(unknown))}")
    first, name = problems[0], str(problems[0]["loc"][0])
    # The rest of the location are indexes and the names of the types that a field may have.
    is_absent = first["type"] == "missing" or (first["input"] is None and len(first["loc"]) == 1)
    words = next(field.description for field in model.model_fields.values() if field.alias == name)
    raise ApiError(400, f"{name} is missing" if is_absent else f"{name} must be {words}")


def reading(model: type[B]) -> BeforeValidator:
    """Return a validator of an object in a body, whose problems are told in words of its own."""
    return BeforeValidator(lambda item: item if item is None or isinstance(item, model) else read(model, item))


def number(query: Mapping[str, str], name: str) -> int | None:
    """Return an integer parameter of the query, or `None` when it is not given."""
    text = query.get(name)
    try:
        return None if text is None else int(text)
    except ValueError as error:
        raise ApiError(400, f"{name} must be an integer") from error
