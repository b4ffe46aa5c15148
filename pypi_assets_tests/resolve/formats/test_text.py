"""Resolutions as text, requirements, tree and JSON."""

import json
import tomllib

import pytest
from packaging.pylock import Pylock

from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage
from pypi_assets.resolve.formats.json_answer import ResolutionResult, as_json, proof_as_json
from pypi_assets.resolve.formats.pylock import as_pylock
from pypi_assets.resolve.formats.text import as_requirements, described, for_targets, remarks_on, tree_nodes
from pypi_assets.resolve.questions import ResolveError
from pypi_assets.resolve.universal import UnsolvableTargetError
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.resolve.formats.answers import PROJECTS, answer
from pypi_assets_tests.resolve.made_index import question


def test_remarks_name_yanked_files_and_unknown_requirements():
    unknown, yanked = remarks_on(answer())
    assert mentions(unknown, "extra-of-lib 2.0")
    assert mentions(yanked, "tool 3")


def test_answer_is_described_by_serial_and_environments():
    assert mentions(described(answer()), 100, "CPython 3.12", "linux-x86_64")
    assert mentions(for_targets(answer(universal=True)), "CPython 3.12", "linux-x86_64", "windows-x86_64")


def test_tree_expands_each_project_once():
    nodes = [(node.depth, node.name, node.requirement, node.note) for node in tree_nodes(answer())]
    assert nodes == [
        (0, "app 1.0", "app", ""),
        (1, "lib[x] 1.5", "lib[x]>=1", ""),
        (2, "app 1.0", "app", "see above"),
        (2, "extra-of-lib 2.0", "extra-of-lib; extra == 'x'", "unknown requirements"),
        (0, "tool 3", "tool==3", "yanked"),
    ]


def test_pins_of_some_environments_have_a_marker():
    names = [node.name for node in tree_nodes(answer("app", "tool==3; sys_platform == 'win32'", universal=True))]
    assert "tool 3 ; sys_platform == 'win32'" in names
    assert "app 1.0" in names


HASH = "ab" * 32


def test_releases_have_hashes_and_requiring_projects():
    lines = as_requirements(answer()).text.splitlines()
    assert lines[0].startswith("#")
    assert mentions(lines[0], "pypi-assets resolve --format requirements", 100)
    place = lines.index("app==1.0 \\")
    assert lines[place + 1 : place + 3] == [f"    --hash=sha256:{HASH}", "    # via the requirements, lib"]


def test_marker_follows_the_version():
    text = as_requirements(answer("app", "tool==3; sys_platform == 'win32'", universal=True)).text
    assert "tool==3 ; sys_platform == 'win32' \\\n    --hash=" in text


def test_release_without_hash_cannot_be_locked(monkeypatch):
    monkeypatch.setitem(PROJECTS, "tool", {"3": {"sha256": None, "requires_dist": []}})
    with pytest.raises(ResolveError, match=naming("tool", 3)):
        as_requirements(answer("tool"))
    names = ["tool-3-py3-none-any.whl", "tool-3.tar.gz"]
    monkeypatch.setitem(PROJECTS, "tool", {"3": {"filenames": names, "requires_dist": []}})
    assert as_requirements(answer("tool")).remarks == ()


def test_json_is_complete():
    content = json.loads(json.dumps(as_json(answer())))
    assert set(content) == set(ResolutionResult.__annotations__)
    assert (content["serial"], content["roots"], content["proof"]) == (100, ["app", "tool"], None)
    assert [environment["platform"] for environment in content["environments"]] == ["linux-x86_64"]
    app, extra, lib, tool = content["releases"]
    assert (app["normalized"], app["version"], app["marker"]) == ("app", "1.0", None)
    assert app["requires"] == [{"normalized": "lib", "version": "1.5"}]
    assert app["required_by"] == [
        {"normalized": None, "requirement": "app"},
        {"normalized": "lib", "requirement": "app"},
    ]
    assert lib["extras"] == ["x"]
    assert extra["requirements_known"] is False
    assert tool["yanked"] is True
    assert [file["filename"] for file in tool["files"]] == ["tool-3-py3-none-any.whl"]
    assert len(content["remarks"]) == 2


def test_proof_has_steps():
    with pytest.raises(UnsolvableTargetError) as raised:
        answer("app", "lib>2")
    content = proof_as_json(100, question("app", "lib>2"), raised.value, ["did you mean"])
    assert set(content) == set(ResolutionResult.__annotations__)
    assert content["releases"] is None
    assert content["proof"] is not None
    assert content["proof"]["steps"] == list(raised.value.proof.steps)
    assert content["proof"]["hints"] == ["did you mean"]
    assert content["roots"] == ["app", "lib"]


class Shown:
    """An index page source that gives each file an address, except files in `hidden`."""

    def __init__(self, *hidden: str) -> None:
        self.hidden = hidden

    def page(self, project: str, /) -> SimplePage:
        names = [f"{project.replace('-', '_')}-{version}" for version in ("1.0", "1.5", "2.0", "3")]
        files = []
        for name in [f"{filename}{end}" for filename in names for end in ("-py3-none-any.whl", ".tar.gz")]:
            url = None if name in self.hidden else f"https://files.example.org/{name}"
            files.append(SimpleFile(name, "1", "wheel", url, HASH, 10, None, None, False, None, False))
        return SimplePage(project, None, tuple(files))


def test_pylock_follows_pep_751():
    rendered = as_pylock(answer(), Shown())
    content = tomllib.loads(rendered.text)
    lock = Pylock.from_dict(content)
    assert [(package.name, str(package.version)) for package in lock.packages] == [
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
    assert [dependency["name"] for dependency in content["packages"][0]["dependencies"]] == ["lib"]
    assert content["tool"]["pypi-assets"]["serial"] == 100
    assert lock.environments is not None
    assert len(lock.environments) == 1


def test_pylock_of_several_environments():
    rendered = as_pylock(answer("app", "tool==3; sys_platform == 'win32'", universal=True), Shown())
    lock = Pylock.from_dict(tomllib.loads(rendered.text))
    assert lock.environments is not None
    assert len(lock.environments) == 2
    [tool] = [package for package in lock.packages if package.name == "tool"]
    assert str(tool.marker) == 'sys_platform == "win32"'


def test_release_without_address_cannot_be_locked():
    with pytest.raises(ResolveError, match=naming("tool", 3)):
        as_pylock(answer("tool==3"), Shown("tool-3-py3-none-any.whl"))
