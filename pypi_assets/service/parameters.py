"""Parameters of operations: the types of names in routes, with their limits, and the conversion of requests."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from pypi_assets.questions.paging import MOST_PER_PAGE
from pypi_assets.questions.question import Accepts, Parameter
from pypi_assets.questions.question import Parameters as QuestionParameters
from pypi_assets.service.problems import ProblemError, bad_parameter

_MOST_QUERY_FIELDS = 20
_WRONG = re.compile(r"(.*?)(?: - at `\$\.?([^`]*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)


def whole(pattern: str) -> str:
    r"""Return a pattern for msgspec, with `\Z` for `$`, which in Python also matches before a final newline.

    >>> whole("^[a-z]+$")
    '^[a-z]+\\Z'
    """
    return pattern.removesuffix("$") + r"\Z"


def as_json_schema(schema: Any) -> Any:
    r"""Return a schema of msgspec with `$` for each `\Z`, which JSON Schema lacks. There, `$` means the same."""
    if isinstance(schema, Mapping):
        made = {name: as_json_schema(part) for name, part in schema.items()}
        pattern = made.get("pattern")
        return made | {"pattern": re.sub(r"\\Z$", "$", pattern)} if isinstance(pattern, str) else made
    return list(map(as_json_schema, schema)) if isinstance(schema, list | tuple) else schema


ModuleName = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="the dotted name of a module, such as yaml.nodes")
]
ProjectName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=300,
        pattern=whole(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"),
        description="the name of a project, in any spelling: up to 300 ASCII letters and digits, . _ - between them",
    ),
]
VersionText = Annotated[str, Meta(min_length=1, max_length=300, description="a version, such as 2.32.3")]
ImportName = Annotated[str, Meta(min_length=1, max_length=1_000, description="an import, such as google.cloud.storage")]
CommandName = Annotated[str, Meta(min_length=1, max_length=300, description="the name of a command, such as http")]
Sha256 = Annotated[
    str, Meta(pattern=whole("^[0-9A-Fa-f]{64}$"), description="a SHA-256: 64 hex digits, in upper or lower case")
]
Limit = Annotated[int, Meta(ge=1, le=MOST_PER_PAGE, description=f"results in a page: 1 to {MOST_PER_PAGE}")]
CursorText = Annotated[
    str, Meta(min_length=1, max_length=4_000, description="`next` of the previous page, with the same other parameters")
]


class OperationParameters(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base class of the parameters of an operation, from its path and its query.

    For example:

        class ModuleParameters(OperationParameters, frozen=True):
            module: Annotated[str, Meta(description="the dotted name of a module")]
            prefix: Annotated[bool, Meta(description="1: all modules that begin with the name")] = False
    """


class NoParameters(OperationParameters, frozen=True):
    """Parameters of an operation that takes none."""


AnyParameters = TypeVar("AnyParameters", bound=OperationParameters)


def convert_parameters(
    kind: type[AnyParameters], path: Mapping[str, Any], query: Iterable[tuple[str, str]]
) -> AnyParameters:
    """Return `kind` with the values of a path and a query. Raises a ProblemError that names the invalid parameter."""
    values: dict[str, Any] = dict(path)
    for name, value in query:
        if name in values:
            raise bad_parameter(name, f"{name} is given twice", "one value")
        values[name] = value
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise wrong_value(kind, str(error), "query") from None


def query_fields(query: str) -> list[tuple[str, str]]:
    """Return the fields of a query string. Raises a ProblemError if it is invalid."""
    if not query:
        return []
    try:
        fields = parse_qsl(query, True, False, "utf-8", "strict", _MOST_QUERY_FIELDS)
    except ValueError:
        detail = "the query string cannot be parsed: it must be NAME=VALUE&... in UTF-8, percent-encoded"
        raise ProblemError(400, "bad-request", detail) from None
    if any("\0" in part for field in fields for part in field):
        raise ProblemError(400, "bad-request", "the query string contains a NUL")
    return fields


def accepted(kind: type[msgspec.Struct], name: str) -> str:
    """Return a description of the accepted values of the field `name`."""
    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"].get(name, {})
    either = [schema, *schema.get("anyOf", ())]  # an optional field has alternatives
    return next((str(one["description"]) for one in either if "description" in one), "")


def wrong_value(kind: type[msgspec.Struct], text: str, source: str) -> ProblemError:
    """Return the problem of a query or a body that msgspec describes by `text`. It names the field of `kind`.

    It names the `source` if the problem is not about one field.
    """
    if unknown := _UNKNOWN.fullmatch(text):
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind)) or "none"
        return bad_parameter(unknown[1][:100], f"there is no parameter {unknown[1]!r:.200}", f"one of: {known}")
    if missing := _MISSING.fullmatch(text):
        return bad_parameter(missing[1], f"{missing[1]} is missing", accepted(kind, missing[1]) or None)
    match = _WRONG.fullmatch(text)
    reason, name = (match[1], (match[2] or "").partition("[")[0]) if match else (text, "")
    if not name:
        return bad_parameter(source, f"the {source} is invalid: {text}")
    if reason.startswith("Expected `str` matching regex"):
        reason = "The value is not accepted"  # the description follows; a pattern is not for people
    return bad_parameter(name, f"{name}: {reason[0].lower()}{reason[1:]}", accepted(kind, name) or None)


def parameters_type(
    kind: type[QuestionParameters], takes: Iterable[Parameter], base: type[OperationParameters]
) -> type[OperationParameters]:
    """Return the type of an operation's parameters."""
    takes = tuple(takes)
    if not takes and base is OperationParameters:
        return NoParameters
    return cast(
        "type[OperationParameters]",
        msgspec.defstruct(
            kind.__name__,
            _struct_fields(takes),
            bases=(base,),
            namespace={"__doc__": kind.__doc__},
            frozen=True,
            kw_only=True,
        ),
    )


def body_type(kind: type[QuestionParameters], takes: Iterable[Parameter]) -> type[msgspec.Struct]:
    """Return the type of a body with these parameters."""
    return msgspec.defstruct(
        f"{kind.__name__.removesuffix('Parameters')}Body",
        _struct_fields(takes),
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _struct_fields(takes: Iterable[Parameter]) -> list[Any]:
    return [(one.name, annotated(one)) if one.is_required else (one.name, annotated(one), one.default) for one in takes]


def annotated(parameter: Parameter) -> Any:
    """Return the type of a parameter with its limits, for msgspec."""
    return limited(parameter.type, parameter.accepts)


def limited(kind: Any, accepts: Accepts) -> Any:
    """Return a type with limits, for msgspec. The limits of an optional type apply to its values."""
    limits = {name: value for name, value in asdict(accepts).items() if value is not None and name != "canonical"}
    if accepts.pattern is not None:
        limits["pattern"] = whole(accepts.pattern)
    text, most = limits.pop("text"), limits.pop("most", None)
    if get_origin(kind) is tuple:
        item = Annotated[str, Meta(**limits)]
        return Annotated[tuple[item, ...], Meta(description=text, max_length=most)]
    meta = Meta(description=text, **limits)
    if type(None) in get_args(kind):
        [other] = [one for one in get_args(kind) if one is not type(None)]
        return Annotated[other, meta] | None
    return Annotated[kind, meta]
