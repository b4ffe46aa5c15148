"""Unmodified installers and a mirror use the service as their index: newest, and at a serial before a removal.

`served` crawls a devindex, dumps, builds LevelDBs, and runs `pypi-assets serve` as a process.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from benchmarks.service_home import served
from pypi_assets_tests.deploy.foreign_programs import installed_program
from pypi_assets_tests.deploy.test_index_servers import running_devpi
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.service.published import published_index

pytestmark = [pytest.mark.deploy, pytest.mark.nightly]
ACCEPT = {"Accept": "application/vnd.pypi.simple.v1+json"}
THEN = {"alpha": "2.0", "beta-pkg": "1.1", "gone": "1.0"}
"""The newest versions at the serial before `gone` was removed. `alpha` required it then."""
NOW = {"alpha": "2.1", "beta-pkg": "1.1"}
"""The newest versions today. `alpha` 3.0 is yanked."""


@dataclass(frozen=True)
class Followed:
    """A running service. `hashes` are the SHA-256 of the uploaded files by name, also of the removed ones."""

    url: str
    serial: int
    hashes: dict[str, str]

    @property
    def newest(self) -> str:
        return f"{self.url}simple/"

    @property
    def past(self) -> str:
        return f"{self.url}at/{self.serial}/simple/"


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    """Yield a service over an index on which a project was removed and a release was yanked."""
    folder = tmp_path_factory.mktemp("followed")
    with pytest.MonkeyPatch.context() as environment, published_index(folder) as published:
        clear_settings(environment)
        add, history = published.add, published.index.history
        add("wheel", "beta-pkg", "1.0")
        add("wheel", "beta-pkg", "1.1")
        add("sdist", "beta-pkg", "1.1")
        add("wheel", "Alpha", "1.0", requires_dist=["beta-pkg>=1"], requires_python=">=3.8")
        add("wheel", "Alpha", "2.0", requires_dist=["beta-pkg>=1.1", "gone"], requires_python=">=3.8")
        add("wheel", "gone", "1.0")
        before = published.publish_first()
        history.remove_project("gone", at=published.at())
        add("wheel", "Alpha", "2.1", requires_dist=["beta-pkg>=1.1"], requires_python=">=3.8")
        add("wheel", "Alpha", "3.0", requires_dist=["beta-pkg>=1.1"])
        history.yank("Alpha", "3.0", "broken", at=published.at())
        published.publish()
        hashes = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (published.index.folder / "built").iterdir()
        }
        assert requests.get(f"{published.index.url}gone/", timeout=60).status_code == 404
        with served(published.home, index_url=published.index.url) as (url, _):
            yield Followed(url, before, hashes)


def installed(folder: Path) -> dict[str, str]:
    """Return the versions of the packages in a folder of packages, without the tools of the environment itself."""
    found = (re.fullmatch(r"(.+)-([^-]+)\.dist-info", path.name) for path in folder.glob("*.dist-info"))
    names = {match[1].replace("_", "-"): match[2] for match in found if match is not None}
    return {name: version for name, version in names.items() if name in THEN}


def packages_in(environment: Path) -> dict[str, str]:
    [folder] = environment.glob("lib/python*/site-packages")
    return installed(folder)


def pyproject(folder: Path, sources: str) -> Path:
    """Write a project that requires `alpha`, and return its folder."""
    folder.mkdir()
    text = '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\ndependencies = ["alpha"]\n'
    (folder / "pyproject.toml").write_text(text + sources)
    return folder


def require_hashes(followed: Followed, names: set[str], hashes: set[str]) -> None:
    assert hashes == {followed.hashes[name] for name in names}


WHEELS_THEN = {f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name, version in THEN.items()}
FILES_THEN = WHEELS_THEN | {"beta_pkg-1.1.tar.gz"}


def test_pip_lists_downloads_and_installs(followed: Followed, tmp_path: Path) -> None:
    pip = installed_program(tmp_path / "pip", "pip")
    for index, newest, versions in ((followed.newest, "2.1", "2.1, 2.0, 1.0"), (followed.past, "2.0", "2.0, 1.0")):
        listed = pip.run("pip", "index", "versions", "alpha", "--index-url", index)
        assert listed.splitlines()[0] == f"alpha ({newest})"
        assert f"versions: {versions}\n" in listed
    pip.run("pip", "download", "--index-url", followed.newest, "--dest", tmp_path / "downloaded", "alpha")
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "downloaded").iterdir()}
    assert found == {
        name: followed.hashes[name] for name in ("alpha-2.1-py3-none-any.whl", "beta_pkg-1.1-py3-none-any.whl")
    }
    for index, expected in ((followed.past, THEN), (followed.newest, NOW)):
        target, report = tmp_path / f"installed-{expected['alpha']}", tmp_path / "report.json"
        pip.run("pip", "install", "--index-url", index, "--target", target, "--report", report, "alpha")
        assert installed(target) == expected
        hashes = {
            one["download_info"]["archive_info"]["hashes"]["sha256"]
            for one in json.loads(report.read_text())["install"]
        }
        names = {f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name, version in expected.items()}
        require_hashes(followed, names, hashes)


def test_uv_installs_lists_outdated_and_locks(followed: Followed, tmp_path: Path) -> None:
    uv = installed_program(tmp_path / "uv", "uv")
    environment = tmp_path / "installed"
    uv.run("uv", "venv", environment)
    of_environment = ("--python", environment / "bin" / "python", "--index-url")
    uv.run("uv", "pip", "install", *of_environment, followed.past, "alpha")
    assert packages_in(environment) == THEN
    outdated = json.loads(
        uv.run("uv", "pip", "list", "--outdated", "--format", "json", *of_environment, followed.newest)
    )
    assert [(one["name"], one["version"], one["latest_version"]) for one in outdated] == [("alpha", "2.0", "2.1")]
    app = pyproject(tmp_path / "app", f'[[tool.uv.index]]\nurl = "{followed.past}"\ndefault = true\n')
    uv.run("uv", "lock", cwd=app)
    locked = [one for one in tomllib.loads((app / "uv.lock").read_text())["package"] if one["name"] != "app"]
    assert {one["name"]: one["version"] for one in locked} == THEN
    files = [file for one in locked for file in (*one["wheels"], *([one["sdist"]] if "sdist" in one else []))]
    require_hashes(followed, FILES_THEN, {file["hash"].removeprefix("sha256:") for file in files})
    assert all(file["url"].startswith(f"{followed.url}at/files/") for file in files)
    uv.run("uv", "sync", "--locked", cwd=app)
    assert packages_in(app / ".venv") == THEN


def test_poetry_locks_and_installs(followed: Followed, tmp_path: Path) -> None:
    poetry = installed_program(tmp_path / "poetry", "poetry", settings={"POETRY_VIRTUALENVS_IN_PROJECT": "true"})
    source = '[tool.poetry]\npackage-mode = false\n[[tool.poetry.source]]\nname = "past"\npriority = "primary"\n'
    for index, expected in ((followed.past, THEN), (followed.newest, NOW)):
        app = pyproject(tmp_path / f"app-{expected['alpha']}", f'{source}url = "{index}"\n')
        poetry.run("poetry", "lock", "--no-interaction", cwd=app)
        locked = tomllib.loads((app / "poetry.lock").read_text())["package"]
        assert {one["name"]: one["version"] for one in locked} == expected
        hashes = {file["file"]: file["hash"].removeprefix("sha256:") for one in locked for file in one["files"]}
        assert hashes == {name: followed.hashes[name] for name in hashes}
        poetry.run("poetry", "install", "--no-interaction", "--no-root", cwd=app)
        assert packages_in(app / ".venv") == expected


def test_pdm_locks_installs_and_lists_outdated(followed: Followed, tmp_path: Path) -> None:
    settings = {"PDM_CHECK_UPDATE": "0", "PDM_NON_INTERACTIVE": "1"}
    pdm = installed_program(tmp_path / "pdm", "pdm[locked]", settings=settings)  # its own pins of its requirements
    source = '[tool.pdm]\ndistribution = false\n[[tool.pdm.source]]\nname = "pypi"\n'
    app = pyproject(tmp_path / "app", f'{source}url = "{followed.past}"\n')
    pdm.run("pdm", "lock", cwd=app)
    locked = tomllib.loads((app / "pdm.lock").read_text())["package"]
    assert {one["name"]: one["version"] for one in locked} == THEN
    hashes = {file["hash"].removeprefix("sha256:") for one in locked for file in one["files"]}
    require_hashes(followed, FILES_THEN, hashes)
    pdm.run("pdm", "sync", cwd=app)
    assert packages_in(app / ".venv") == THEN
    project = app / "pyproject.toml"
    project.write_text(project.read_text().replace(followed.past, followed.newest))
    outdated = json.loads(pdm.run("pdm", "outdated", "--json", cwd=app))
    assert [(one["package"], one["installed_version"], one["latest_version"]) for one in outdated] == [
        ("alpha", "2.0", "2.1")
    ]


def test_devpi_mirrors_the_newest_and_a_past_index(followed: Followed, tmp_path: Path) -> None:
    program = installed_program(tmp_path / "devpi-server", "devpi-server")
    pip = installed_program(tmp_path / "pip", "pip")
    with running_devpi(tmp_path, program.command) as devpi:
        for name, index, expected in (("newest", followed.newest, NOW), ("past", followed.past, THEN)):
            devpi.request("PUT", f"/me/{name}", type="mirror", volatile=True, mirror_url=index)
            listed = devpi.request("GET", f"/me/{name}")["result"]["projects"]  # type: ignore[index]
            assert sorted(listed) == sorted(expected)
            mirror = f"{devpi.url}/me/{name}/+simple/"
            for project in expected:
                ours, theirs = (shown_hashes(f"{url}{project}/") for url in (index, mirror))
                assert theirs == ours, project
            target = tmp_path / f"installed-{name}"
            pip.run("pip", "install", "--index-url", mirror, "--target", target, "alpha")
            assert installed(target) == expected


def shown_hashes(url: str) -> dict[str, str]:
    """Return the hashes of the files on a page, by name."""
    page = requests.get(url, headers=ACCEPT, timeout=60).json()
    return {file["filename"]: file["hashes"]["sha256"] for file in page["files"]}
