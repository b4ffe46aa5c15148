import pytest

from pypi_assets_tests.named import in_order, unnamed
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published


def serial_of(client: Client, project: str, kind: str) -> int:
    """Return the serial of the first event of this kind."""
    history = client.get(f"/v1/projects/{project}/history").json()["results"]
    return int(next(event["serial"] for event in history if event["kind"] == kind))


def test_project_page_shows_releases_requirements_dependents_and_provides(client: Client):
    document = page(client, "/project/demo/")
    assert in_order(document.text, "3", "1", "2026-03-03", "2026-03-10")
    assert in_order(document.text, "2", "modules", "demo", "demo.new")
    assert document.links["other-app"] == "/project/other-app/"
    assert document.links["6.0"] == "/release/pyyaml/6.0/"


def test_project_page_links_to_state_before_a_yank(client: Client):
    yanked = serial_of(client, "demo", "yank release")
    answer = page(client, "/project/demo/")
    before = f"/at/{yanked - 1}/project/demo/"
    assert before in client.get("/project/demo/").text
    assert "yanked" in answer.text
    assert "yanked" not in page(client, before).text


def test_project_page_data_match_the_api(client: Client, published: Published):
    serial = published.index.serial
    for prefix in ("", f"/at/{serial}.{serial}"):
        document = client.get(f"{prefix}/project/demo.json").json()
        assert document["project"] == client.get(f"{prefix}/v1/projects/demo").json()
        assert document["release"] == client.get(f"{prefix}/v1/projects/demo/2.1").json()
        assert document["history"] == client.get(f"{prefix}/v1/projects/demo/history").json()
        dependents = client.get(f"{prefix}/v1/projects/demo/dependents?limit=10").json()
        assert document["dependents"] == dependents
        assert [requirement["requirement"] for requirement in document["requirements"]["requires"]] == ["PyYAML"]


def test_tree_is_the_same_from_datasets_and_catalog(client: Client, published: Published):
    serial = published.index.serial
    for project in ("demo", "other-app"):
        latest, pinned = (
            client.get(f"{prefix}/project/{project}.json").json()["requirements"]
            for prefix in ("", f"/at/{serial}.{serial}")
        )
        assert latest == pinned
        assert latest["requires"]


def test_removed_project_shows_its_history(client: Client):
    page(client, "/project/gone/")
    assert client.get("/project/gone.json").json()["project"] is None


def test_project_without_files_shows_quarantine(changing: Published):
    changing.index.history.quarantine("Other.App", at=changing.at())
    changing.publish()
    with changing.client() as client:
        for project, is_quarantined in (("other-app", True), ("gone", False)):
            assert ("quarantined this project" in page(client, f"/project/{project}/").text) == is_quarantined


def test_unknown_project_is_a_problem_with_hints(client: Client):
    document = page(client, "/project/dmeo/", status=404)
    assert unnamed(document.text, "demo") == []
    assert client.get("/project/dmeo.json").headers["content-type"] == "application/problem+json"


@pytest.mark.nightly
def test_long_lists_are_paged(changing: Published):
    for number in range(105):
        changing.index.wheel(f"user{number}", "1.0", requires_dist=["demo"])
    for number in range(102):
        changing.index.wheel("many", f"{number}.0")
    changing.publish()
    with changing.client() as client:
        first = page(client, "/dependents/demo/")
        assert unnamed(first.text, "106") == []
        second = page(client, first.links["More"])
        assert "More" not in second.links
        assert len({name for name in (*first.links, *second.links) if name.startswith("user")}) == 105
        assert in_order(page(client, "/releases/many/").text, "1", "2")
        assert unnamed(page(client, "/releases/many/?page=2").text, "2") == []
        assert unnamed(page(client, "/releases/many/?page=3").text, "3") == []
        assert "102 releases" in page(client, "/project/many/").text
        assert len(client.get("/project/many/").content) < 60_000


def test_release_page_shows_files_requirements_and_provides(client: Client):
    document = page(client, "/release/demo/1.0/")
    assert "demo-1.0-py3-none-any.whl" in document.text
    assert "demo-1.0.tar.gz" in document.text
    assert "PyYAML>=5,<7" in document.text
    assert document.links["demo"] in {"/project/demo/", "/import/demo/", "/command/demo/"}
    assert "/changes/demo/?after=1.0" in document.links.values()
    sha256 = client.get("/v1/projects/demo/1.0").json()["result"]["files"][0]["sha256"]
    assert document.links["demo-1.0-py3-none-any.whl"] == f"/files/{sha256}/demo-1.0-py3-none-any.whl"
    assert client.get(document.links["demo-1.0-py3-none-any.whl"]).status_code == 307
    page(client, "/release/demo/2.0/")


def test_release_page_data_match_the_api(client: Client):
    document = client.get("/release/demo/1.0.0.json").json()
    assert document["release"] == client.get("/v1/projects/demo/1.0").json()


def test_release_page_shows_unsatisfiable_requirement(client: Client):
    page(client, "/release/demo/2.0/")
    page(client, "/release/other-app/0.1/")


def test_comparison_shows_changes_between_two_versions(client: Client):
    document = page(client, "/changes/demo/?before=1.0&after=2.1")
    assert in_order(document.text, "1.0", "2.1")
    assert unnamed(document.text, "PyYAML>=5,<7", "PyYAML") == []
    assert unnamed(document.text, "demo.new") == []
    assert unnamed(document.text, "demo") == []
    changes = client.get("/changes/demo.json?before=1.0&after=2.1").json()["changes"]
    assert changes["modules"] == {"added": ["demo.new"], "removed": []}


def test_comparison_defaults_to_the_two_newest_versions(client: Client):
    assert in_order(page(client, "/changes/demo/").text, "2.0", "2.1")
    assert in_order(page(client, "/changes/demo/?after=2.0").text, "1.0", "2.0")
    page(client, "/changes/pyyaml/")


def test_unknown_version_is_a_problem(client: Client):
    assert unnamed(page(client, "/changes/demo/?before=9", status=404).text, "9") == []
    assert in_order(page(client, "/release/demo/9/", status=404).text, "demo", "2.1")
