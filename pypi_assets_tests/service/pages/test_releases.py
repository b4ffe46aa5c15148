from pypi_assets_tests.named import in_order, unnamed
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client


def test_a_release_shows_its_files_requirements_and_what_it_provides(client: Client):
    document = page(client, "/release/demo/1.0/")
    assert "demo-1.0-py3-none-any.whl" in document.text
    assert "demo-1.0.tar.gz" in document.text
    assert "PyYAML>=5,<7" in document.text
    assert document.links["demo"] in {"/project/demo/", "/import/demo/", "/command/demo/"}
    assert document.links["What changed in it"] == "/changes/demo/?after=1.0"
    sha256 = client.get("/v1/projects/demo/1.0").json()["result"]["files"][0]["sha256"]
    assert document.links["demo-1.0-py3-none-any.whl"] == f"/files/{sha256}/demo-1.0-py3-none-any.whl"
    assert client.get(document.links["demo-1.0-py3-none-any.whl"]).status_code == 307
    page(client, "/release/demo/2.0/")


def test_the_data_of_a_release_are_what_the_api_answers(client: Client):
    found = client.get("/release/demo/1.0.0.json").json()
    assert found["release"] == client.get("/v1/projects/demo/1.0").json()


def test_a_requirement_that_no_version_fits_is_shown(client: Client):
    page(client, "/release/demo/2.0/")
    page(client, "/release/other-app/0.1/")


def test_what_changed_between_two_versions(client: Client):
    document = page(client, "/changes/demo/?before=1.0&after=2.1")
    assert in_order(document.text, "1.0", "2.1")
    assert unnamed(document.text, "PyYAML>=5,<7", "PyYAML") == []
    assert unnamed(document.text, "demo.new") == []
    assert unnamed(document.text, "demo") == []
    found = client.get("/changes/demo.json?before=1.0&after=2.1").json()["changes"]
    assert found["modules"] == {"added": ["demo.new"], "removed": []}


def test_without_versions_the_newest_is_compared_with_the_one_before(client: Client):
    assert in_order(page(client, "/changes/demo/").text, "2.0", "2.1")
    assert in_order(page(client, "/changes/demo/?after=2.0").text, "1.0", "2.0")
    page(client, "/changes/pyyaml/")


def test_a_version_that_is_not_there_is_a_problem(client: Client):
    assert unnamed(page(client, "/changes/demo/?before=9", status=404).text, "9") == []
    assert in_order(page(client, "/release/demo/9/", status=404).text, "demo", "2.1")
