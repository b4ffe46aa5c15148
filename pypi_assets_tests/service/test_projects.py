"""A project and its versions, from published versions, with what the catalog adds."""

import shutil
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from pypi_assets.lookup import project_answers
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published, client_of


def test_a_project_has_its_releases_and_what_is_known_of_it(client: Client, published: Published):
    found = client.get("/v1/projects/Demo").json()["result"]
    assert (found["project"], found["newest"], found["commands"]) == ("demo", "2.1", ["demo"])
    assert [(one["version"], one["yanked"], len(one["files"])) for one in found["releases"]] == [
        ("1.0", False, 2),
        ("2.0", True, 1),
        ("2.1", False, 1),
    ]
    assert found["releases"][1]["files"][0]["yanked_reason"] == "broken"
    assert (found["summary"], found["license"], found["links"], found["status"]) == (None, None, [], "active")
    assert found["first_serial"] < found["last_serial"] == published.index.serial


def test_a_project_has_the_licence_and_the_links_of_its_newest_release(changing: Published):
    headers = [
        ("License-Expression", "MIT"),
        ("Home-page", "https://home.example/"),
        ("Project-URL", "Source, https://code.example/a?b=1&c=2"),
        ("Project-URL", "Bad, javascript:alert(1)"),
        ("Project-URL", "<script>alert(1)</script>, https://hostile.example/?a='\"><script>"),
    ]
    changing.add("wheel", "demo", "3.0", extra_headers=headers)
    serial = changing.publish()
    with changing.client() as client:
        for prefix in ("", f"/at/{serial}.{serial}"):
            found = client.get(f"{prefix}/v1/projects/demo").json()["result"]
            assert found["license"] == "MIT"
            assert [(one["label"], one["url"]) for one in found["links"]] == [
                ("Homepage", "https://home.example/"),
                ("Source", "https://code.example/a?b=1&c=2"),
                ("<script>alert(1)</script>", "https://hostile.example/?a='\"><script>"),
            ]
            document = page(client, f"{prefix}/project/demo/")
            assert document.external == [one["url"] for one in found["links"]]
            assert unnamed(document.text, "MIT", "code.example") == []


def test_a_project_has_the_status_that_its_page_showed_at_the_serial(changing: Published):
    before = changing.index.serial
    changing.index.history.archive("PyYAML", at=changing.at())
    changing.index.history.yank("PyYAML", "6.0", "old", at=changing.at())
    last = changing.publish()
    with changing.client() as client:
        for prefix, status in ((f"/at/{before}", "active"), (f"/at/{last}", "archived"), ("", "archived")):
            found = client.get(f"{prefix}/v1/projects/pyyaml", allow_redirects=True).json()["result"]
            assert (prefix, found["status"]) == (prefix, status)
            text = page(client, f"{prefix}/project/pyyaml/").text
            assert ("archived" in text) == (status == "archived")


def test_a_version_has_what_its_files_require_and_provide(client: Client):
    found = client.get("/v1/projects/demo/2.0.0").json()["result"]
    assert (found["version"], found["requires_dist"]) == ("2.0", ["PyYAML>=6.1"])
    assert (found["modules"], found["commands"], found["yanked"]) == (["demo", "demo.new"], [], True)
    assert client.get("/v1/projects/demo/1.0").json()["result"]["commands"] == ["demo"]
    assert client.get("/v1/projects/demo/1.0").json()["result"]["modules"] == ["demo"]


def test_what_there_is_not_has_hints(client: Client):
    answer = client.get("/v1/projects/yaml").json()
    assert unnamed(answer["hints"][0], "yaml", "PyYAML", "yaml-copy") == []
    [hint] = client.get("/v1/projects/demo/7").json()["hints"]
    assert unnamed(hint, "demo", "2.1") == []
    assert client.get("/v1/projects/!").json()["parameter"] == "project"


def test_a_catalog_that_does_not_answer_costs_no_answer(published: Published, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    with published.service() as service, client_of(service) as client:
        known = client.get("/v1/projects/other-app").json()["result"]
        monkeypatch.setattr(project_answers, "facts_at", fail)
        answer = client.get("/v1/projects/demo")
        assert answer.status_code == 200
        assert answer.json()["result"]["first_serial"] is None
        assert answer.headers["cache-control"] == "no-store"
        assert client.get("/v1/projects/other-app").json()["result"] == known  # it was remembered
        monkeypatch.undo()
        assert client.get("/v1/projects/demo").json()["result"]["first_serial"] is not None


def test_what_was_answered_without_a_catalog_is_not_remembered_once_there_is_one(published: Published, tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "storage").symlink_to(published.home / "storage")
    with published.service(home=tmp_path / "home") as service, client_of(service) as client:
        assert client.get("/v1/projects/demo").json()["result"]["first_serial"] is None
        for path in published.home.glob("catalog.sqlite*"):
            shutil.copy(path, tmp_path / "home")
        service.follow()
        assert client.get("/v1/projects/demo").json()["result"]["first_serial"] is not None
