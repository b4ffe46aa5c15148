"""poetry.lock: entries with markers and files."""

import tomllib

from pypi_assets.locks.pins import LockedFile
from pypi_assets.locks.reading import poetry_entries
from pypi_assets_tests.locks import samples


def test_entries_have_markers_and_files() -> None:
    entries = {entry.name: entry for entry in poetry_entries(tomllib.loads(samples.POETRY))}
    assert entries["PyYAML"].files == (LockedFile("PyYAML-6.0.2-py3-none-any.whl", {"sha256": "dd"}),)
    assert entries["PyYAML"].marker == "python_version >= '3.9'"
    assert entries["grouped"].marker == "(sys_platform == 'win32') or (python_version < '3')"
    assert entries["forked"].elsewhere == "git"
