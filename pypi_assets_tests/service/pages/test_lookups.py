from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client


def test_an_import_shows_its_candidates_with_reasons(client: Client):
    document = page(client, "/import/yaml.nodes.Node/")
    assert "The longest known module of it is yaml.nodes" in document.text
    assert "pip install pyyaml" in document.text
    document = page(client, "/import/yaml/")
    assert "All 2 candidates" in document.text
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
    assert "import yaml.json" in page(client, "/import/yaml.json/").text
    assert client.get("/import/yaml.json.json").json()["owners"]["results"][0]["import"] == "yaml.json"


def test_a_command_lists_projects(client: Client):
    document = page(client, "/command/demo/")
    assert "1 project installs it." in document.text
    assert document.links["demo"] == "/project/demo/"
    assert "No project is known that installs it." in page(client, "/command/never-was/").text


def test_a_file_leads_to_its_release(client: Client):
    [file] = client.get("/v1/projects/demo/2.1").json()["result"]["files"]
    document = page(client, f"/file/{file['sha256'].upper()}/")
    assert document.links["2.1"] == "/release/demo/2.1/"
    assert "No live file has this hash" in page(client, "/file/" + "0" * 64 + "/").text
    assert page(client, "/file/xyz/", status=400).text.count("sha256")


def test_a_command_at_an_earlier_serial_is_a_page_that_names_what_there_is(client: Client):
    document = page(client, "/at/12.12/command/demo/", status=404)
    assert "for the latest serial alone" in document.text
    assert "has the commands of a version as of a serial" in document.text
