import pytest

from pypi_assets.service.pages.problems import prefers_html
from pypi_assets_tests.service.pages.documents import BROWSER, page, parsed
from pypi_assets_tests.service.published import Client, Published

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


def test_only_browsers_prefer_html(subtests: pytest.Subtests):
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
def test_problem_page_has_the_members_of_the_document(client: Client, path: str):
    problem = client.get(path).json()
    document = page(client, path, status=problem["status"])
    text = document.text.casefold()
    accepts = "" if problem["status"] == 404 else problem.get("accepts", "")
    for fact in (problem["detail"], accepts, *problem.get("hints", ())):
        assert " ".join(fact.split()).casefold() in text
    for one in problem.get("suggestions", ()):
        assert document.links[one["name"]] == f"/{one['kind']}/{one['name']}/"
    assert document.links["Go to the first page"] == "/"


LEADS_ON = [
    ("/project/dmeo/", {"demo": "/project/demo/", "Search for dmeo": "/search/?q=dmeo"}),
    ("/release/demo/9.9/", {"demo 2.1": "/release/demo/2.1/", "Search for demo": "/search/?q=demo"}),
    ("/at/{serial}.{serial}/project/dmeo/", {"demo": "/at/{serial}.{serial}/project/demo/"}),
    ("/at/{serial}.{serial}/project/dmeo/", {"See the latest": "/project/dmeo/"}),
    ("/at/{serial}.{serial}/command/demo/", {"See the latest": "/command/demo/"}),
    ("/at/{serial}.999999/project/demo/", {"See the latest": "/project/demo/"}),
    ("/at/999999/project/demo/", {"See the latest": "/project/demo/"}),
]


def test_problem_page_links_to_similar_names(client: Client, published: Published, subtests: pytest.Subtests):
    serial = published.index.serial
    for path, links in LEADS_ON:
        with subtests.test(path=path, links=links):
            answer = client.get(path.format(serial=serial), headers=BROWSER)
            found = parsed(answer.text)
            assert (found.faults, answer.status_code >= 400) == ([], True)
            assert {text: found.links.get(text) for text in links} == {
                text: address.format(serial=serial) for text, address in links.items()
            }


def test_time_before_history_links_to_first_answerable_time(client: Client):
    problem = client.get("/at/2020-01-01/project/demo/").json()
    document = page(client, "/at/2020-01-01/project/demo/", status=409)
    assert f"/at/{problem['first_serial']}/project/demo/" in document.links.values()


def test_unknown_names_link_to_near_names(client: Client, subtests: pytest.Subtests):
    for path, near in (
        ("/import/yamll/", "/import/yaml/"),
        ("/command/dmeo/", "/command/demo/"),
        ("/search/?q=yamll", "/import/yaml/"),
        ("/search/?q=dmeo==1.0", "/project/demo/"),
    ):
        with subtests.test(path=path):
            assert near in page(client, path).links.values()


def test_hostile_paths_do_not_make_external_links(client: Client, subtests: pytest.Subtests):
    for path in (
        "/at/1//elsewhere.invalid/",
        "//elsewhere.invalid/at/1/",
        "/at/1/%5Celsewhere.invalid",
        "/at/x'\"><b>/",
    ):
        with subtests.test(path=path):
            answer = client.get(path, headers=BROWSER)
            document = parsed(answer.text)
            assert (document.faults, document.external) == ([], [])
