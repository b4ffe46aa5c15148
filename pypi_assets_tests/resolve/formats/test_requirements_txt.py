import pytest

from pypi_assets.resolve.formats.text import as_requirements
from pypi_assets.resolve.questions import ResolveError
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.resolve.formats.answers import PROJECTS, answer

HASH = "ab" * 32


def test_each_release_has_its_hashes_and_what_it_is_there_for():
    lines = as_requirements(answer()).text.splitlines()
    assert lines[0].startswith("#")
    assert mentions(lines[0], "pypi-assets resolve --format requirements", 100)
    place = lines.index("app==1.0 \\")
    assert lines[place + 1 : place + 3] == [f"    --hash=sha256:{HASH}", "    # via the requirements, lib"]


def test_a_marker_stands_behind_the_version():
    text = as_requirements(answer("app", "tool==3; sys_platform == 'win32'", universal=True)).text
    assert "tool==3 ; sys_platform == 'win32' \\\n    --hash=" in text


def test_without_a_hash_there_is_no_lock(monkeypatch):
    monkeypatch.setitem(PROJECTS, "tool", {"3": {"sha256": None, "requires_dist": []}})
    with pytest.raises(ResolveError, match=naming("tool", 3)):
        as_requirements(answer("tool"))
    names = ["tool-3-py3-none-any.whl", "tool-3.tar.gz"]
    monkeypatch.setitem(PROJECTS, "tool", {"3": {"filenames": names, "requires_dist": []}})
    assert as_requirements(answer("tool")).remarks == ()
