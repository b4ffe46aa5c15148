import pytest

from pypi_assets.service.pages.problems import prefers_html
from pypi_assets_tests.service.pages.documents import BROWSER, page
from pypi_assets_tests.service.published import Client

ACCEPTED = [
    (BROWSER["Accept"], True),
    ("text/html", True),
    ("text/html;q=0.9, application/json;q=0.8", True),
    ("", False),
    ("*/*", False),
    ("text/*", False),
    ("application/json", False),
    ("application/json, text/html", False),
    ("application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.1, text/html;q=0.01", False),
    ("text/html;q=x", False),
]


def test_browsers_alone_prefer_html(subtests: pytest.Subtests):
    for accept, expected in ACCEPTED:
        with subtests.test(accept=accept, expected=expected):
            assert prefers_html(accept) is expected


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/v1/projects/dmeo",
        "/v1/modules/yaml?wrong=1",
        "/project/dmeo/",
        "/at/never/import/yaml/",
        "/project/a b/",
    ],
)
def test_a_problem_as_a_page_has_the_facts_of_the_document(client: Client, path: str):
    problem = client.get(path).json()
    document = page(client, path, status=problem["status"])
    for fact in ("title", "detail", "parameter", "accepts"):
        assert str(problem.get(fact, "")) in document.text
    for hint in problem.get("hints", ()):
        assert hint in document.text
