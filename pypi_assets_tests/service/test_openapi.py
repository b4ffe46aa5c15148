"""The OpenAPI document: it is valid, and real answers of every route match it."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import requests
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from pypi_assets.questions.addresses import filled, names_in
from pypi_assets.questions.question import all_questions
from pypi_assets.service import changes, simple_files, solvability, visit_routes
from pypi_assets.service.questions import all_operations
from pypi_assets_tests.service.published import Client, Published

SHA256 = "0" * 64
PATHS = [
    "/v1/status",
    "/v1/queue?limit=3",
    "/v1/queue?project=PyYAML",
    "/v1/queue?project=none",
    "/v1/modules/yaml",
    "/v1/modules/none",
    "/v1/modules/y?prefix=1&limit=1",
    "/v1/modules/yaml?limit=1",
    "/v1/owners/yaml",
    "/v1/owners/none",
    "/v1/commands/demo",
    "/v1/completions?q=de",
    "/v1/completions",
    "/v1/solvability",
    "/v1/solvability/newest",
    "/v1/hashes/" + SHA256,
    "/v1/hashes/short",
    "/v1/projects/PyYAML",
    "/v1/projects/demo/9",
    "/v1/projects/demo/visits?limit=1",
    "/v1/projects/demo/visits/1",
    "/v1/visits/1",
    "/v1/projects/pyyaml/dependents",
    "/v1/projects/pyyaml/dependents?limit=1&excludes=6.0",
    "/v1/projects/pyyaml/impact",
    "/v1/projects/pyyaml/impact?version=6.0&limit=1",
    "/v1/projects/pyyaml/impact?transitive=1",
    "/v1/projects/pyyaml/breaks?version=6.0",
    "/v1/projects/pyyaml/breaks",
    "/v1/projects/demo/history?all=1",
    "/v1/changes",
    "/v1/changes?kind=none",
    "/v1/changes/stream",
    "/pypi/demo/json",
    "/pypi/none/json",
    "/pypi/demo/1.0/json",
    "/pypi/demo/9/json",
    "/healthz",
    "/readyz",
    "/openapi.json",
    *(
        question.path.format(project=project, version="2.0") + query
        for question in all_questions()
        if question.path is not None and question.path.startswith("/v1/projects/{project}")
        for project in ("demo", "none")
        for query in (("", "?limit=1") if question.sort_key else ("",))
    ),
    *(
        filled(question.path, {question.takes[0].name: question.example.split()[0]})
        for question in all_questions()
        if question.path is not None and not question.has_body and names_in(question.path) == {question.takes[0].name}
    ),
]
"""What is asked. Questions about a project are asked about one that exists, and about one that does not."""
BODIES = [
    ("/v1/hashes", {"hashes": [SHA256]}),
    ("/v1/hashes", {"hashes": "none"}),
    ("/v1/visits", {"projects": ["demo"]}),
    ("/v1/owners", {"imports": ["yaml", "none"]}),
    ("/v1/resolve", {"requirements": ["demo", "other.app[all]"]}),
    ("/v1/resolve", {"requirements": ["demo", "pyyaml>7"], "semantics": "uv"}),
    ("/v1/resolve", {"requirements": ["demo>"]}),
    ("/v1/collisions", {"pins": ["demo==2.0", "pyyaml==6.0", "none==1"], "python": "3.12"}),
    ("/v1/collisions", {"pins": ["demo>=2.0"]}),
    ("/v1/purls", {"purls": ["pkg:pypi/demo@1.0", "pkg:npm/left-pad", "pkg:pypi/none"]}),
]


@pytest.fixture(scope="module")
def document(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def answers(client: Client, published: Published) -> Iterator[tuple[str, requests.Response]]:
    serial = published.index.serial
    for prefix in ("", f"/at/{serial}.{serial}", f"/at/{serial}"):
        for path in PATHS:
            if not prefix or path.startswith(("/v1/", "/pypi/")):
                yield "get", client.get(prefix + path)
        for path, body in BODIES:
            yield "post", client.post(prefix + path, body)


def described(document: dict[str, Any], method: str, path: str) -> dict[str, Any] | None:
    """Return the operation that a path matches: the one with the fewest parameters."""
    parts = path.strip("/").split("/")
    fitting = []
    for template, operations in document["paths"].items():
        names = template.strip("/").split("/")
        if method not in operations or len(names) != len(parts):
            continue
        if all(name.startswith("{") or name == part for name, part in zip(names, parts, strict=True)):
            fitting.append((template.count("{"), operations[method]))
    return min(fitting, key=lambda one: one[0])[1] if fitting else None


def test_document_is_valid_openapi(document: dict[str, Any]):
    validate(document)


def test_real_answers_match_their_descriptions(client: Client, published: Published, document: dict[str, Any]):
    seen = set()
    for method, answer in answers(client, published):
        path = requests.utils.urlparse(answer.url).path
        operation = described(document, method, path)
        if operation is None:
            assert answer.status_code == 404, path
            continue
        seen.add(operation["operationId"])
        response = operation["responses"][str(answer.status_code)]
        if answer.status_code == 307:
            continue
        media_type = answer.headers["content-type"].partition(";")[0]
        schema = response["content"][media_type]["schema"]
        Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json())
    others = {"get /metrics", "get /docs", "post /pypi", "get /rss/updates.xml", "get /rss/packages.xml"}
    others |= {one for one in (f"get {path}" for path in document["paths"]) if "/simple" in one or "/files/" in one}
    assert {one["operationId"] for paths in document["paths"].values() for one in paths.values()} - seen == others


def test_parameters_and_types_are_described(document: dict[str, Any]):
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                assert parameter.get("description"), f"{path}: {parameter['name']}"
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description") or name == "ImportOwners", name


def patterns(schema: object) -> Iterator[str]:
    """Yield the patterns in a part of a document."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from patterns(part)


def test_patterns_accept_no_trailing_newline(client: Client, document: dict[str, Any], subtests: pytest.Subtests):
    described = set(patterns(document))
    assert len(described) > 5
    assert not [one for one in described if not one.endswith("$") or "\\Z" in one]
    modules = (changes, simple_files, solvability, visit_routes)
    for operation in (*all_operations(), *(one for module in modules for one in module.OPERATIONS)):
        for kind in filter(None, (operation.parameters, operation.body)):
            for pattern in patterns(msgspec.json.schema(kind)):
                with subtests.test(operation=operation.path, pattern=pattern):
                    assert pattern.endswith("\\Z")
    for path in ("v1/projects/demo%0A/dependents", f"v1/hashes/{'0' * 64}%0A", "v1/changes?since=now%0A"):
        response = client.get(path)
        assert (response.status_code, response.json()["type"]) == (400, "/docs#bad-parameter"), path
    for requirement in ("3.12\n", "3.12"):
        body = {"requirements": ["demo"], "python": requirement}
        assert (client.post("/v1/resolve", body).status_code == 400) == (requirement != "3.12")


def test_api_page_lists_every_route_and_loads_only_local_files(client: Client, document: dict[str, Any]):
    page = client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for path in document["paths"]:
        assert path.startswith("/at/") or f"<code>{path}</code>" in page.text
    loaded = re.findall(r'(?:src|href|data-document)="([^"#]+)"', page.text)
    assert {"/openapi.json", "/static/docs.js", "/static/vendor/swagger-ui-bundle.js"} <= set(loaded)
    for address in loaded:
        assert address.startswith("/")
        assert client.get(address).status_code == 200, address
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert not re.search(r"https?:|\*|unsafe", policy)
    for kind in ("not-exact", "bad-parameter"):
        assert f'id="{kind}"' in page.text
