import json

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published


def test_it_is_what_the_command_prints(client: Client, published: Published, monkeypatch):
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(published.home))
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", published.index.url)
    for option, query in (("--all", "?all=1"), (None, "")):
        printed = Commands(published.home).json("history", "demo", *([option] if option else []))
        answered = client.get(f"/v1/projects/Demo/history{query}").json()
        assert json.dumps(answered["results"], sort_keys=True) == json.dumps(printed, sort_keys=True)
        assert answered["serial"] == published.index.serial


def test_an_unknown_project_is_a_problem_with_hints(client: Client):
    answer = client.get("/v1/projects/demoo/history")
    assert (answer.status_code, [unnamed(hint, "demo") for hint in answer.json()["hints"]]) == (404, [[]])
