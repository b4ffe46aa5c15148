"""The OpenAPI document, generated from the types of the operations, and a page that shows it to people."""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Route

from pypi_assets.service.operations import PAGES, Call, Endpoint, Operation, operation_routes
from pypi_assets.service.pages.rendering import HEADERS, HTML, render
from pypi_assets.service.parameters import NoParameters, as_json_schema
from pypi_assets.service.pins import PIN_ACCEPTS, PIN_PATTERN
from pypi_assets.service.problems import MEDIA_TYPE, TITLES, Problem
from pypi_assets.service.responses import JSON, NDJSON, WholeAnswer, to_json
from pypi_assets.service.service import Service

_REF = "#/components/schemas/{name}"
_PROBLEMS = {
    400: "A value is invalid, or the request cannot be parsed",
    409: "Parameters cannot be combined, or there is no exact answer for this moment",
    401: "The request needs a token",
    403: "The request is rejected",
    404: "Nothing was found",
    410: "The epoch or the set of datasets has expired",
    413: "The body is too large",
    415: "The body has an unsupported format",
    429: "This client has reached its limit",
    451: "The file is quarantined on the index today, so its bytes are not served",
    503: "A required part does not answer, or is not built yet",
}
_REDIRECTS = {301: "The address with the normalized name", 307: "The current address"}
_OF_ALL = (400, 503)
_AT_SERIAL = (404, 409, 410)
_WITH_BODY = (413, 415, 429)
_PIN = {
    "name": "at",
    "in": "path",
    "required": True,
    "description": PIN_ACCEPTS,
    "schema": {"type": "string", "pattern": PIN_PATTERN},
}
_HEADERS = {
    "X-PyPI-Last-Serial": {"description": "The serial of the answer", "schema": {"type": "integer"}},
}


def routes(service: Service, others: Callable[[], Iterable[BaseRoute]]) -> list[Route]:
    """Return the routes of the document and of its page. `others` returns the routes to describe."""

    def document(_service: Service, _call: Call[NoParameters]) -> WholeAnswer:
        return WholeAnswer(to_json(openapi_document(others())))

    def page(_service: Service, _call: Call[NoParameters]) -> WholeAnswer:
        return docs_answer(openapi_document(others()))

    operations = [
        Operation(
            path="/openapi.json",
            handler=document,
            summary="Return this document",
            answer=dict[str, Any],
            tag="service",
            at_serial=False,
        ),
        Operation(
            path="/docs",
            handler=page,
            summary="Show the routes as a page",
            media_types=("text/html",),
            tag="service",
            at_serial=False,
        ),
    ]
    return list(operation_routes(service, operations))


def openapi_document(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the routes that are operations of the API, without pages for people."""
    found = [
        (route.path, route.endpoint.operation)
        for route in routes
        if isinstance(route, Route) and isinstance(route.endpoint, Endpoint)
        if route.endpoint.operation.tag != PAGES
    ]
    schemas = _Schemas(found)
    paths: dict[str, dict[str, Any]] = {}
    for path, operation in found:
        shown = path.replace(":path}", "}")
        paths.setdefault(shown, {})[operation.method.lower()] = _operation(shown, operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pypi-assets",
            "version": version("pypi-assets"),
            "description": "Answers about Python packages, for the latest state or at any serial of the index.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas.components},
    }


class _Schemas:
    """The JSON schemas of all types in some operations."""

    def __init__(self, operations: Iterable[tuple[str, Operation]]) -> None:
        self._types: list[Any] = [Problem]
        for _, operation in operations:
            for one in (operation.answer, operation.line, operation.body, operation.parameters):
                if one is not None and one not in self._types:
                    self._types.append(one)
        found, components = msgspec.json.schema_components(self._types, ref_template=_REF)
        self._found, self.components = found, as_json_schema(components)

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type, mostly a reference."""
        return self._found[self._types.index(kind)]

    def parameters(self, operation: Operation) -> list[dict[str, Any]]:
        """Return the parameters of an operation, path parameters first."""
        name = self.of(operation.parameters)["$ref"].rpartition("/")[2]
        schema = self.components[name]
        found = []
        for field, of_field in schema["properties"].items():
            is_in_path = field in operation.path_parameters
            parameter = {"name": field, "in": "path" if is_in_path else "query", "schema": of_field}
            if is_in_path or field in schema.get("required", ()):
                parameter["required"] = True
            either = [of_field, *of_field.get("anyOf", ())]
            description = next((one["description"] for one in either if "description" in one), None)
            if description is not None:
                parameter["description"] = description
            found.append(parameter)
        return sorted(found, key=lambda one: one["in"] != "path")


def _operation(path: str, operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    is_pinned = path.startswith("/at/{at}/")
    parameters = [*([_pin(operation)] if is_pinned else []), *schemas.parameters(operation)]
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()} {path}",
        "summary": operation.summary + (", at a serial" if is_pinned else ""),
        "tags": [operation.tag],
        "responses": _responses(operation, schemas, is_pinned=is_pinned),
    }
    if operation.description:
        described["description"] = operation.description
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {operation.body_media_type: {"schema": schemas.of(operation.body)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _pin(operation: Operation) -> dict[str, Any]:
    """Return the parameter for the serial, with the options that may follow the serial."""
    if not operation.options:
        return _PIN
    options = "|".join(operation.options)
    pattern = f"{PIN_PATTERN.removesuffix('$')}(,({options}))*$"
    accepts = f"{PIN_ACCEPTS}; then, after commas, {' or '.join(operation.options)}"
    return {**_PIN, "description": accepts, "schema": {"type": "string", "pattern": pattern}}


def _responses(operation: Operation, schemas: _Schemas, *, is_pinned: bool) -> dict[str, Any]:
    content: dict[str, Any] = {one: {} for one in operation.media_types if operation.answer is None}
    if operation.answer is not None:
        content[JSON] = {"schema": schemas.of(operation.answer)}
    if operation.line is not None:
        content[NDJSON] = {"schema": {"type": "string", "description": "One line of JSON for each result"}}
    responses: dict[str, Any] = {"200": {"description": "The answer", "headers": _HEADERS, "content": content}}
    if is_pinned:
        responses["307"] = {"description": "The address of this answer, with its epoch", "headers": _HEADERS}
    statuses = {*_OF_ALL, *operation.problems, *(_AT_SERIAL if is_pinned else ())}
    statuses |= set(_WITH_BODY) if operation.body is not None else set()
    problem = {MEDIA_TYPE: {"schema": schemas.of(Problem)}}
    responses |= {str(one): {"description": _REDIRECTS[one], "headers": _HEADERS} for one in statuses & {*_REDIRECTS}}
    for status in sorted(statuses - {*_REDIRECTS}):
        responses[str(status)] = {"description": _PROBLEMS[status], "headers": _HEADERS, "content": problem}
    return responses


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The policy of this page, which is looser than on other pages.

It allows images in `data:` URLs, which the style of Swagger UI uses, and does not require Trusted Types, which its
renderer (React) lacks. All scripts, styles and requests are still restricted to this service.
"""
_PAGE_HEADERS = tuple((name, _POLICY if name == "Content-Security-Policy" else value) for name, value in HEADERS)


def docs_answer(document: Mapping[str, Any]) -> WholeAnswer:
    """Return the page of a document. Without scripts, the page is a table of the routes."""
    body = render("docs.html", {"document": document, "titles": TITLES})
    return WholeAnswer(body, HTML, headers=_PAGE_HEADERS)
