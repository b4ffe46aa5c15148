"""The events of an index, and the files of a project."""

import orjson

from pypi_assets.devindex.history import History
from pypi_assets.devindex.index_state import IndexState
from pypi_assets.devindex.served_pages import simple_project_json

WHEEL = "demo-1.0-py3-none-any.whl"


def actions(history: History, after: int = 0) -> list[tuple[str, str | None, str]]:
    return [(event.name, event.version, event.action) for event in history.state().changelog_since(after, 50_000)]


def shown(history: History | IndexState, project: str = "demo") -> list[tuple[str, bool | str]]:
    state = history.state() if isinstance(history, History) else history
    found = state.project(project)
    assert found is not None
    files = orjson.loads(simple_project_json(found, "https://files.example.org"))["files"]
    return [(file["filename"], file["yanked"]) for file in files]
