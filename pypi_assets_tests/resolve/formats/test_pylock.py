import tomllib

import pytest
from packaging.pylock import Pylock

from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage
from pypi_assets.resolve.formats.pylock import as_pylock
from pypi_assets.resolve.questions import ResolveError
from pypi_assets_tests.naming import naming
from pypi_assets_tests.resolve.formats.answers import answer

HASH = "ab" * 32


class Shown:
    """Pages that show each file at an address, apart from those that are `hidden`."""

    def __init__(self, *hidden: str) -> None:
        self.hidden = hidden

    def page(self, project: str, /) -> SimplePage:
        names = [f"{project.replace('-', '_')}-{one}" for one in ("1.0", "1.5", "2.0", "3")]
        files = []
        for name in [f"{one}{end}" for one in names for end in ("-py3-none-any.whl", ".tar.gz")]:
            url = None if name in self.hidden else f"https://files.example.org/{name}"
            files.append(SimpleFile(name, "1", "wheel", url, HASH, 10, None, None, False, None, False))
        return SimplePage(project, None, tuple(files))


def test_it_is_a_lock_by_pep_751():
    rendered = as_pylock(answer(), Shown())
    content = tomllib.loads(rendered.text)
    lock = Pylock.from_dict(content)
    assert [(one.name, str(one.version)) for one in lock.packages] == [
        ("app", "1.0"),
        ("extra-of-lib", "2.0"),
        ("lib", "1.5"),
        ("tool", "3"),
    ]
    app, extra, *_ = lock.packages
    assert app.wheels is not None
    assert app.wheels[0].url == "https://files.example.org/app-1.0-py3-none-any.whl"
    assert app.wheels[0].hashes == {"sha256": HASH}
    assert extra.sdist is not None
    assert [one["name"] for one in content["packages"][0]["dependencies"]] == ["lib"]
    assert content["tool"]["pypi-assets"]["serial"] == 100
    assert lock.environments is not None
    assert len(lock.environments) == 1


def test_markers_and_environments_of_several():
    rendered = as_pylock(answer("app", "tool==3; sys_platform == 'win32'", universal=True), Shown())
    lock = Pylock.from_dict(tomllib.loads(rendered.text))
    assert lock.environments is not None
    assert len(lock.environments) == 2
    [tool] = [one for one in lock.packages if one.name == "tool"]
    assert str(tool.marker) == 'sys_platform == "win32"'


def test_a_release_without_an_address_cannot_be_locked():
    with pytest.raises(ResolveError, match=naming("tool", 3)):
        as_pylock(answer("tool==3"), Shown("tool-3-py3-none-any.whl"))
