from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published


def serial_of(client: Client, project: str, kind: str) -> int:
    """The serial of the first event of this kind."""
    history = client.get(f"/v1/projects/{project}/history").json()["results"]
    return int(next(one["serial"] for one in history if one["kind"] == kind))


def test_a_project_shows_releases_requirements_dependents_and_what_it_provides(client: Client):
    document = page(client, "/project/demo/")
    assert "3 releases, 1 yank, from 2026-03-03 to 2026-03-10." in document.text
    assert "yanked broken" in document.text
    assert "Required by 1 project" in document.text
    assert "2 modules demo demo.new" in document.text
    assert document.links["other-app"] == "/project/other-app/"
    assert document.links["6.0"] == "/release/pyyaml/6.0/"


def test_what_was_true_before_a_yank_is_one_step_away(client: Client):
    yanked = serial_of(client, "demo", "yank release")
    answer = page(client, "/project/demo/")
    before = f"/at/{yanked - 1}/project/demo/"
    assert before in client.get("/project/demo/").text
    assert "yanked" in answer.text
    assert "yanked" not in page(client, before).text


def test_the_data_of_a_project_are_what_the_api_answers(client: Client, published: Published):
    serial = published.index.serial
    for prefix in ("", f"/at/{serial}.{serial}"):
        found = client.get(f"{prefix}/project/demo.json").json()
        assert found["project"] == client.get(f"{prefix}/v1/projects/demo").json()
        assert found["release"] == client.get(f"{prefix}/v1/projects/demo/2.1").json()
        assert found["history"] == client.get(f"{prefix}/v1/projects/demo/history").json()
        dependents = client.get(f"{prefix}/v1/projects/demo/dependents?limit=10").json()
        assert found["dependents"] == dependents
        assert [one["requirement"] for one in found["requirements"]["requires"]] == ["PyYAML"]


def test_the_tree_is_the_same_from_published_files_and_from_the_catalog(client: Client, published: Published):
    serial = published.index.serial
    for project in ("demo", "other-app"):
        latest, pinned = (
            client.get(f"{prefix}/project/{project}.json").json()["requirements"]
            for prefix in ("", f"/at/{serial}.{serial}")
        )
        assert latest == pinned
        assert latest["requires"]


def test_a_project_that_was_removed_shows_its_history(client: Client):
    document = page(client, "/project/gone/")
    assert "It has no live files, as of this serial." in document.text
    assert "project removed" in document.text
    assert client.get("/project/gone.json").json()["project"] is None


def test_a_project_that_never_was_is_a_problem_with_hints(client: Client):
    document = page(client, "/project/dmeo/", status=404)
    assert "did you mean demo?" in document.text
    assert client.get("/project/dmeo.json").headers["content-type"] == "application/problem+json"


def test_lists_are_in_pages(changing: Published):
    for number in range(105):
        changing.index.wheel(f"user{number}", "1.0", requires_dist=["demo"])
    for number in range(102):
        changing.index.wheel("many", f"{number}.0")
    changing.publish()
    with changing.client() as client:
        first = page(client, "/dependents/demo/")
        assert "106 projects with a live release that requires it." in first.text
        second = page(client, first.links["More"])
        assert "More" not in second.links
        assert len({name for name in (*first.links, *second.links) if name.startswith("user")}) == 105
        assert "page 1 of 2" in page(client, "/releases/many/").text
        assert "page 2 of 2" in page(client, "/releases/many/?page=2").text
        assert "There is no page 3 of them." in page(client, "/releases/many/?page=3").text
        assert "102 releases" in page(client, "/project/many/").text
        assert len(client.get("/project/many/").content) < 60_000
