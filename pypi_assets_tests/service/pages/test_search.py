import pytest

from pypi_assets_tests.named import in_order, unnamed
from pypi_assets_tests.service.pages.documents import BROWSER, page
from pypi_assets_tests.service.published import Client, Published


def leads_to(client: Client, text: str, prefix: str = "") -> str | None:
    answer = client.get(f"{prefix}/search/", params={"q": text}, headers=BROWSER)
    assert answer.status_code in {200, 303}
    return answer.headers.get("location")


MEANT = [
    ("yaml", "/import/yaml/"),
    ("import yaml", "/import/yaml/"),
    ("from yaml.nodes import Node", "/import/yaml.nodes/"),
    ("PyYAML", "/project/PyYAML/"),
    ("demo==1.0", "/release/demo/1.0/"),
    ("pip install demo==2.0", "/release/demo/2.0/"),
    ("demo-2.1-py3-none-any.whl", "/release/demo/2.1/"),
    ("demo==9.9", "/project/demo/"),
    ("uvx demo", "/command/demo/"),
    ("other_app", "/project/Other.App/"),
]


def test_what_means_one_thing_leads_to_it(client: Client, subtests: pytest.Subtests):
    for text, location in MEANT:
        with subtests.test(text=text, location=location):
            assert leads_to(client, text) == location


def test_a_hash_leads_to_its_file(client: Client):
    [file] = client.get("/v1/projects/demo/2.1").json()["result"]["files"]
    assert leads_to(client, file["sha256"].upper()) == f"/file/{file['sha256']}/"


def test_what_means_several_things_lists_them(client: Client):
    assert leads_to(client, "demo") is None
    document = page(client, "/search/?q=demo")
    assert unnamed(document.text, "demo") == []
    assert in_order(document.text, "2.1", "3", "1")
    found = client.get("/search.json?q=demo").json()
    assert [one["kind"] for one in found["results"]] == ["import", "project", "command"]
    assert found["hints"] == []


def test_nothing_found_has_hints(client: Client):
    found = client.get("/search.json?q=yamll").json()
    assert (found["results"], [unnamed(hint, "yaml") for hint in found["hints"]]) == ([], [[]])
    assert unnamed(page(client, "/search/?q=yamll").text, "yaml") == []
    page(client, "/search/")


def test_a_search_at_a_serial_finds_what_was_there_then(client: Client, published: Published):
    now = published.index.serial
    gone = next(
        one["serial"] for one in client.get("/v1/projects/gone/history").json()["results"] if one["kind"] == "add file"
    )
    assert leads_to(client, "gone", f"/at/{gone}.{gone}") == f"/at/{gone}.{gone}/project/gone/"
    assert leads_to(client, "gone", f"/at/{now}.{now}") is None


@pytest.mark.parametrize("text", ["a b c", "%", "\u202e", "x" * 500, "'\"><script>", "a/../b", "../..", "a\\b"])
def test_odd_texts_find_nothing_and_stay_as_they_are(client: Client, text: str):
    answer = client.get("/search/", params={"q": text}, headers=BROWSER)
    assert answer.status_code == 200
    assert page(client, answer.url.removeprefix(client.url.rstrip("/"))).text


def test_a_text_that_is_too_long_is_refused(client: Client):
    assert client.get("/search/", params={"q": "x" * 501}).json()["parameter"] == "q"


def test_an_import_shows_its_candidates_with_reasons(client: Client):
    document = page(client, "/import/yaml.nodes.Node/")
    assert unnamed(document.text, "yaml.nodes") == []
    assert unnamed(document.text, "pyyaml") == []
    document = page(client, "/import/yaml/")
    assert unnamed(document.text, "2") == []
    assert document.text.index("PyYAML") < document.text.index("yaml-copy")
    assert "2 dependents" in document.text
    assert document.links["PyYAML"] == "/project/pyyaml/"


def test_the_data_of_a_look_up_are_what_the_api_answers(client: Client):
    [file] = client.get("/v1/projects/demo/2.1").json()["result"]["files"]
    for data, name, route in (
        ("/import/yaml.json", "owners", "/v1/owners/yaml"),
        ("/command/demo.json", "command", "/v1/commands/demo"),
        (f"/file/{file['sha256']}.json", "file", f"/v1/hashes/{file['sha256']}"),
        ("/at/9.9/import/yaml.json", "owners", "/at/9.9/v1/owners/yaml"),
    ):
        assert client.get(data).json() == {name: client.get(route).json()}


def test_an_import_that_ends_like_data_has_a_page(client: Client):
    assert unnamed(page(client, "/import/yaml.json/").text, "yaml.json") == []
    assert client.get("/import/yaml.json.json").json()["owners"]["results"][0]["import"] == "yaml.json"


def test_a_command_lists_projects(client: Client):
    document = page(client, "/command/demo/")
    assert document.links["demo"] == "/project/demo/"
    page(client, "/command/never-was/")


def test_a_file_leads_to_its_release(client: Client):
    [file] = client.get("/v1/projects/demo/2.1").json()["result"]["files"]
    document = page(client, f"/file/{file['sha256'].upper()}/")
    assert document.links["2.1"] == "/release/demo/2.1/"
    page(client, "/file/" + "0" * 64 + "/")
    assert page(client, "/file/xyz/", status=400).text.count("sha256")


def test_a_command_at_an_earlier_serial_is_a_page_that_names_what_there_is(client: Client):
    page(client, "/at/12.12/command/demo/", status=409)
