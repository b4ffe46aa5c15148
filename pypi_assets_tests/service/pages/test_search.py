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


def test_unambiguous_search_redirects_to_its_result(client: Client, subtests: pytest.Subtests):
    for text, location in MEANT:
        with subtests.test(text=text, location=location):
            assert leads_to(client, text) == location


def test_hash_redirects_to_its_file(client: Client):
    [file] = client.get("/v1/projects/demo/2.1").json()["result"]["files"]
    assert leads_to(client, file["sha256"].upper()) == f"/file/{file['sha256']}/"


def test_ambiguous_search_lists_all_results(client: Client):
    assert leads_to(client, "demo") is None
    document = page(client, "/search/?q=demo")
    assert unnamed(document.text, "demo") == []
    assert in_order(document.text, "2.1", "3", "1")
    found = client.get("/search.json?q=demo").json()
    assert [result["kind"] for result in found["results"]] == ["import", "project", "command"]
    assert found["hints"] == []


def test_search_without_results_has_hints(client: Client):
    document = client.get("/search.json?q=yamll").json()
    assert (document["results"], [unnamed(hint, "yaml") for hint in document["hints"]]) == ([], [[]])
    assert unnamed(page(client, "/search/?q=yamll").text, "yaml") == []
    page(client, "/search/")


def test_search_at_a_serial_uses_past_state(client: Client, published: Published):
    now = published.index.serial
    gone = next(
        result["serial"]
        for result in client.get("/v1/projects/gone/history").json()["results"]
        if result["kind"] == "add file"
    )
    assert leads_to(client, "gone", f"/at/{gone}.{gone}") == f"/at/{gone}.{gone}/project/gone/"
    assert leads_to(client, "gone", f"/at/{now}.{now}") is None


@pytest.mark.parametrize("text", ["a b c", "%", "\u202e", "x" * 500, "'\"><script>", "a/../b", "../..", "a\\b"])
def test_odd_texts_find_nothing_and_are_echoed_unchanged(client: Client, text: str):
    answer = client.get("/search/", params={"q": text}, headers=BROWSER)
    assert answer.status_code == 200
    assert page(client, answer.url.removeprefix(client.url.rstrip("/"))).text


def test_too_long_text_is_rejected(client: Client):
    assert client.get("/search/", params={"q": "x" * 501}).json()["parameter"] == "q"


def test_import_page_shows_candidates_with_reasons(client: Client):
    document = page(client, "/import/yaml.nodes.Node/")
    assert unnamed(document.text, "yaml.nodes") == []
    assert unnamed(document.text, "pyyaml") == []
    document = page(client, "/import/yaml/")
    assert unnamed(document.text, "2") == []
    assert document.text.index("PyYAML") < document.text.index("yaml-copy")
    assert "2 dependents" in document.text
    assert document.links["PyYAML"] == "/project/pyyaml/"


def test_lookup_page_data_match_the_api(client: Client):
    [file] = client.get("/v1/projects/demo/2.1").json()["result"]["files"]
    for data, name, route in (
        ("/import/yaml.json", "owners", "/v1/owners/yaml"),
        ("/command/demo.json", "command", "/v1/commands/demo"),
        (f"/file/{file['sha256']}.json", "file", f"/v1/hashes/{file['sha256']}"),
        ("/at/9.9/import/yaml.json", "owners", "/at/9.9/v1/owners/yaml"),
    ):
        assert client.get(data).json() == {name: client.get(route).json()}


def test_import_ending_in_json_has_a_page(client: Client):
    assert unnamed(page(client, "/import/yaml.json/").text, "yaml.json") == []
    assert client.get("/import/yaml.json.json").json()["owners"]["results"][0]["import"] == "yaml.json"


def test_command_page_lists_projects(client: Client):
    document = page(client, "/command/demo/")
    assert document.links["demo"] == "/project/demo/"
    page(client, "/command/never-was/")


def test_file_page_links_to_its_release(client: Client):
    [file] = client.get("/v1/projects/demo/2.1").json()["result"]["files"]
    document = page(client, f"/file/{file['sha256'].upper()}/")
    assert document.links["2.1"] == "/release/demo/2.1/"
    page(client, "/file/" + "0" * 64 + "/")
    assert page(client, "/file/xyz/", status=400).text.count("sha256")


def test_command_at_earlier_serial_is_a_page_with_alternatives(client: Client):
    page(client, "/at/12.12/command/demo/", status=409)
