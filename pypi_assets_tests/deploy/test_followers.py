"""Programs of others follow the service as an index: bandersnatch, and the lister and loader of Software Heritage.

The service answers from a crawled index, and the programs are released packages in environments of their own.
"""

import json
import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from packaging.utils import canonicalize_name

from pypi_assets.service.service import Service
from pypi_assets_tests.deploy.foreign_programs import ForeignProgram, installed_program
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.journal.written import write_journal
from pypi_assets_tests.service.published import Client, Published, client_of, published_index

pytestmark = pytest.mark.deploy
_log = logging.getLogger(__name__)
JSON = "application/vnd.pypi.simple.v1+json"
PROJECTS = 300
"""How many projects are mirrored: enough for several workers, lists in parts, and names of all spellings."""
WITH_CHANGELOG = "bandersnatch==6.8.0"
"""A release that reads the changelog by XML-RPC. Later ones compare the serials of the list."""
SOFTWARE_HERITAGE = """
import json, sys
from swh.lister.pypi.lister import PyPILister
from swh.loader.package.pypi.loader import PyPILoader
from swh.scheduler import get_scheduler
from swh.storage import get_storage
from swh.storage.algos.snapshot import snapshot_get_all_branches

base, scheduler, storage = sys.argv[1], get_scheduler("memory"), get_storage("memory")
PyPILister.PACKAGE_URL = base + "project/{package_name}/"

def follow():
    lister = PyPILister(scheduler=scheduler, url=base + "pypi")
    stats = lister.run()
    origins = scheduler.get_listed_origins(lister.lister_obj.id, limit=10_000).results
    serial = scheduler.get_or_create_lister("pypi", "pypi").current_state["last_serial"]
    return {"origins": sorted(one.url for one in origins), "seen": stats.origins, "serial": serial}

def load(name):
    done = PyPILoader(storage, base + f"project/{name}/").load()
    snapshot = done.get("snapshot_id")
    branches = snapshot_get_all_branches(storage, bytes.fromhex(snapshot)).branches if snapshot else {}
    return {"status": done["status"], "branches": sorted(branch.decode() for branch in branches)}

for line in sys.stdin:
    command, *arguments = line.split()
    print("ANSWER", json.dumps({"follow": follow, "load": load}[command](*arguments)), flush=True)
"""
"""A program that lists and loads on demand, with the scheduler and the storage in memory."""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_settings(monkeypatch)


@dataclass
class Followed:
    """A service over a crawled index, and the index."""

    published: Published
    service: Service
    client: Client

    def publish(self) -> int:
        """Crawl and publish everything new, and return the serial that the service then has."""
        self.published.publish()
        write_journal(self.published)
        self.service.follow()
        return self.service.serial

    def get(self, path: str) -> Any:
        answer = self.client.get(path, headers={"Accept": JSON}, allow_redirects=True)
        assert answer.ok, (path, answer.text)
        return answer.json()

    def listed(self) -> dict[str, int]:
        """Return the listed projects by normalized name, with their serials."""
        return {canonicalize_name(one["name"]): one["_last-serial"] for one in self.get("/simple/")["projects"]}


@contextmanager
def followed_index(folder: Path, projects: int) -> Iterator[Followed]:
    """Yield a service over an index with `projects` projects, of which some have sdists, yanks and several releases."""
    with published_index(folder) as published:
        for number in range(projects):
            name = f"{'Pkg' if number % 7 else 'pkg'}{'.-_'[number % 3]}{number}"
            published.add("wheel", name, "1.0", requires_dist=["pkg-0>=1"] if number else [])
            if number % 5 == 0:
                published.add("sdist", name, "1.1")
            if number % 10 == 0:
                published.index.history.yank(name, "1.0", f"broken <{number}>", at=published.at())
        published.publish_first()
        write_journal(published)
        with published.service() as service, client_of(service) as client:
            yield Followed(published, service, client)


def change_twenty_times(published: Published) -> None:
    """Add releases and projects, yank, unyank and remove: twenty changes."""
    history = published.index.history
    for number in range(8):
        published.add("wheel", f"Pkg{'.-_'[(number + 1) % 3]}{number + 1}", "2.0")
    for number in range(4):
        published.add("wheel", f"new-{number}", "0.1")
    for number in (1, 2, 3):
        history.yank(f"pkg-{number}", "2.0", "again", at=published.at())
    history.unyank("pkg-0", "1.0", at=published.at())
    history.remove_project("pkg-20", at=published.at())
    history.remove_release("pkg-5", "1.1", at=published.at())
    history.quarantine("pkg-21", at=published.at())
    published.add("sdist", "pkg-22", "3.0")


def log_versions(program: ForeignProgram, *packages: str) -> None:
    """Log the installed versions of these packages."""
    for package in packages:
        code = f"from importlib.metadata import version; print(version({package!r}))"
        _log.info("%s %s", package, program.run("python", "-c", code).strip())


@dataclass
class Bandersnatch:
    """A mirror by bandersnatch of the metadata of an index."""

    program: ForeignProgram
    folder: Path
    master: str
    api_method: str

    def run(self) -> None:
        """Mirror everything new. It fails if a project could not be mirrored."""
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "mirror.conf"
        config.write_text(
            f"[mirror]\ndirectory = {self.folder / 'data'}\nmaster = {self.master.rstrip('/')}\njson = true\n"
            f"release-files = false\nallow-non-https = true\napi-method = {self.api_method}\nworkers = 3\n"
            "timeout = 60\nhash-index = false\nstop-on-error = true\n"
            f"root_uri = {self.master}\n"
        )
        self.program.run("bandersnatch", "-c", config, "mirror")

    @property
    def serial(self) -> int:
        return int((self.folder / "data" / "status").read_text())

    @property
    def documents(self) -> dict[str, Any]:
        """Return the mirrored JSON documents by normalized name."""
        return {path.name: json.loads(path.read_text()) for path in (self.folder / "data" / "web" / "json").iterdir()}

    def page(self, project: str) -> Any:
        return json.loads((self.folder / "data" / "web" / "simple" / project / "index.v1_json").read_text())


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("requirement", "api_method"), [("bandersnatch", "simple"), (WITH_CHANGELOG, "xmlrpc")], ids=["list", "changelog"]
)
def test_bandersnatch_mirrors_and_follows(tmp_path: Path, requirement: str, api_method: str) -> None:
    program = installed_program(tmp_path / "program", requirement)
    log_versions(program, "bandersnatch")
    with followed_index(tmp_path / "index", PROJECTS) as followed:
        mirror = Bandersnatch(program, tmp_path / "mirror", followed.client.url, api_method)
        mirror.run()
        first = mirror.documents
        assert len(first) == PROJECTS
        assert_equal(mirror, followed, followed.listed())
        assert mirror.serial == max(followed.listed().values()) == followed.service.serial

        before = followed.service.serial
        change_twenty_times(followed.published)
        after = followed.publish()
        assert after >= before + 20
        mirror.run()
        listed = followed.listed()
        changed = {name: serial for name, serial in listed.items() if serial > before}
        assert_equal(mirror, followed, changed)
        unchanged = mirror.documents.keys() - changed.keys()
        assert {name: mirror.documents[name] for name in unchanged} == {name: first[name] for name in unchanged}
        assert mirror.serial == (after if api_method == "xmlrpc" else max(listed.values()))


def files_of(page: Any) -> dict[str, tuple[str, bool]]:
    """Return the files of a page with their hashes and yanks, of which bandersnatch keeps no reasons."""
    return {file["filename"]: (file["hashes"]["sha256"], bool(file["yanked"])) for file in page["files"]}


def assert_equal(mirror: Bandersnatch, followed: Followed, names: dict[str, int]) -> None:
    """Check the mirrored documents and pages of some projects, which have files, against the origin's files."""
    documents = mirror.documents
    for name in names:
        assert documents[name] == followed.get(f"/pypi/{name}/json"), name
        origin = requests.get(f"{followed.published.index.url}{name}/", headers={"Accept": JSON}, timeout=30).json()
        page = mirror.page(name)
        assert files_of(page) == files_of(origin), name
        serials = documents[name]["last_serial"], origin["meta"]["_last-serial"]
        assert serials == (names[name], names[name]), (name, serials, names[name])


class SoftwareHeritage:
    """The running program `SOFTWARE_HERITAGE`."""

    def __init__(self, installed: ForeignProgram, url: str, log: Path) -> None:
        self._log = log.open("wb")
        self._program = subprocess.Popen(
            [*map(str, installed.command("python")), "-c", SOFTWARE_HERITAGE, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> "SoftwareHeritage":
        return self

    def __exit__(self, *_error: object) -> None:
        self._program.kill()
        self._program.communicate()
        self._log.close()

    def answer(self, line: str) -> Any:
        """Return the answer to one command."""
        program = self._program
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(line + "\n")
        program.stdin.flush()
        printed = next((text for text in program.stdout if text.startswith("ANSWER ")), None)
        assert printed is not None, Path(self._log.name).read_text()[-4_000:]
        return json.loads(printed.removeprefix("ANSWER "))


@pytest.mark.nightly
def test_software_heritage_lists_and_loads(tmp_path: Path) -> None:
    installed = installed_program(tmp_path / "program", "swh-lister", "swh-loader-core")
    log_versions(installed, "swh-lister", "swh-loader-core")
    with followed_index(tmp_path / "index", 20) as followed:
        published, url = followed.published, followed.client.url
        with SoftwareHeritage(installed, url, tmp_path / "log") as program:
            first = program.answer("follow")
            names = {canonicalize_name(origin.split("/")[-2]) for origin in first["origins"]}
            assert names == followed.listed().keys()
            assert first["serial"] == followed.service.serial
            assert program.answer("follow")["seen"] == 0

            [origin] = [one for one in first["origins"] if canonicalize_name(one.split("/")[-2]) == "pkg-5"]
            name = origin.split("/")[-2]
            assert name != "pkg-5"
            loaded = program.answer(f"load {name}")
            assert loaded == {"status": "eventful", "branches": ["HEAD", "releases/1.1"]}
            published.add("sdist", name, "1.2")
            published.add("sdist", "new", "0.1")
            followed.publish()
            later = program.answer("follow")
            assert (later["seen"], later["serial"]) == (2, followed.service.serial)
            assert program.answer(f"load {name}")["branches"] == ["HEAD", "releases/1.1", "releases/1.2"]
            assert program.answer(f"load {name}")["status"] == "uneventful"
            assert program.answer("load pkg-1") == {"status": "uneventful", "branches": []}  # it has no sdist
