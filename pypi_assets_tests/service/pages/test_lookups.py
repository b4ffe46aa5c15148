from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client


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
