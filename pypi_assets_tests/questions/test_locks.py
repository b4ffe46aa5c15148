"""The files that an installer may choose of a pinned version, and the reasons for the others."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.locks.environments import ANY_ENVIRONMENT, Environment, named_environment
from pypi_assets.locks.lock_formats import read_lock
from pypi_assets.locks.pins import LockedFile, Pin, RemarkKind
from pypi_assets.lookup.answers import Answer
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.pinned_files import PinnedFile
from pypi_assets.lookup.reader import DatasetReader
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.locks import InstalledDistribution, LockedPins, pinned_releases, pip_order
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.counted_steps import growth
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.named import unnamed

DISTRIBUTIONS = [
    InstalledDistribution("aa", ("bb",)),
    InstalledDistribution("bb", ("cc; extra == 'x'",)),
    InstalledDistribution("cc", has_requires_python=True),
    InstalledDistribution("dd"),
    InstalledDistribution("ee", ("aa", "not a requirement;"), has_requires_python=True),
    InstalledDistribution("ff", ("gg",)),
    InstalledDistribution("gg", ("ff",)),
    InstalledDistribution("hh", ("bb[x]",)),
    InstalledDistribution("ii", ("ff", "dd; python_version < '3'")),
]


def test_lock_matches_the_output_of_pip(tmp_path: Path) -> None:
    for one in DISTRIBUTIONS:
        requires = [text for text in one.requires_dist if not text.endswith(";")]
        python = ">=3.8" if one.has_requires_python else None
        make_wheel(tmp_path, one.name, "1", requires_dist=requires, requires_python=python, provides_extra=["x"])
    command = [sys.executable, "-m", "pip", "install", "--isolated", "--no-index", "--no-cache-dir", "--dry-run"]
    names = [f"{distribution.name}==1" for distribution in DISTRIBUTIONS]
    target = ["--find-links", str(tmp_path), "--ignore-installed", "--no-compile", "--target", str(tmp_path / "site")]
    command.remove("--dry-run")
    done = subprocess.run([*command, *target, *names], capture_output=True, text=True, check=True)
    [printed] = re.findall(r"Installing collected packages: (.*)", done.stdout)
    assert printed.split(", ") == pip_order(DISTRIBUTIONS, named_environment("3.12"))


names = st.sampled_from(["a", "b", "c", "d"])


@given(st.dictionaries(names, st.lists(names.map(lambda name: f"{name}>=1"), max_size=3)))
def test_requirements_come_first_except_in_cycles(required: dict[str, list[str]]) -> None:
    order = pip_order([InstalledDistribution(name, tuple(texts)) for name, texts in required.items()], ANY_ENVIRONMENT)
    assert sorted(order) == sorted(required)
    direct = {name: {text[0] for text in texts} & required.keys() for name, texts in required.items()}
    reached = {name: set(found) for name, found in direct.items()}
    for _ in required:
        for found in reached.values():
            found |= {further for one in tuple(found) for further in direct[one]}
    for name, others in direct.items():
        for other in others:
            in_circle = any(one in reached[one] for one in (other, *reached[other]))
            assert in_circle or order.index(other) < order.index(name)


def test_work_grows_linearly_for_any_depth_of_requirements() -> None:
    def order(count: int) -> None:
        chain = [InstalledDistribution(f"p{number}", (f"p{number + 1}",)) for number in range(count)]
        assert pip_order(chain, ANY_ENVIRONMENT) == [one.name for one in reversed(chain)]

    assert growth(order, 50) < 5


def file(filename: str, sha256: str = "aa", *, yanked: bool = False, modules: bool = True, python: str | None = None):
    kind = "wheel" if filename.endswith(".whl") else "sdist" if filename.endswith(".gz") else "egg"
    known = ("a",) if modules else None
    return PinnedFile(filename, kind, sha256, python, (), (), yanked, "data" if modules else "error", known)


ANY = file("a-1-py3-none-any.whl", "11")
LINUX = file("a-1-cp312-cp312-manylinux_2_17_x86_64.whl", "22")
WINDOWS = file("a-1-cp312-cp312-win_amd64.whl", "33")
SDIST = file("a-1.tar.gz", "44")
EGG = file("a-1.egg", "55")
KNOWN = Answer(None, 5, (), dict)


class Files:
    """A snapshot with one version of one project, which has these files."""

    def __init__(self, *files: PinnedFile) -> None:
        self.files_of_version = files

    def pinned_files(self, _project: str, _version: str) -> tuple[str, tuple[PinnedFile, ...]] | None:
        return ("A", self.files_of_version) if self.files_of_version else None

    def unfollowed(self, project: str) -> str | None:
        return f"{project} is not followed"


@pytest.mark.parametrize(
    ("files", "python", "platform", "chosen"),
    [
        ((ANY, LINUX, WINDOWS, SDIST), None, None, (ANY, LINUX, WINDOWS)),
        ((ANY, LINUX, WINDOWS, SDIST), "3.12", "linux", (LINUX,)),
        ((ANY, LINUX, WINDOWS, SDIST), "3.11", "linux", (ANY,)),
        ((LINUX, WINDOWS, SDIST), "3.12", "macos", (SDIST,)),
        ((LINUX, WINDOWS), None, "windows", (WINDOWS,)),
        ((EGG,), None, None, ()),
        ((file("a-1-py3-none-any.whl", python="<3.12"), SDIST), "3.12", None, (SDIST,)),
    ],
)
def test_installer_prefers_fitting_wheels_over_sdists(files, python, platform, chosen) -> None:
    [release], _ = pinned_releases([PIN], Files(*files), KNOWN, named_environment(python, platform))
    assert release.chosen == chosen
    assert release.files == files


PIN = Pin("a", "a", "1", "line 3")


def kinds(*files: PinnedFile, locked: tuple[LockedFile, ...] = (), platform: str | None = None) -> list[RemarkKind]:
    pin = Pin("a", "a", "1", "line 3", files=locked)
    environment = named_environment(platform=platform)
    return [remark.kind for remark in pinned_releases([pin], Files(*files), KNOWN, environment)[1]]


def test_differences_from_the_lock_are_named() -> None:
    assert kinds() == [RemarkKind.UNKNOWN]
    assert kinds(ANY) == []
    assert kinds(SDIST) == [RemarkKind.FROM_SDIST]
    assert kinds(WINDOWS, platform="linux") == [RemarkKind.NO_FILE]
    assert kinds(EGG) == [RemarkKind.NO_FILE]
    assert kinds(file("a-1-py3-none-any.whl", modules=False)) == [RemarkKind.UNREAD]
    assert kinds(file("a-1-py3-none-any.whl", yanked=True)) == [RemarkKind.YANKED]
    assert kinds(ANY, file("a-1.tar.gz", yanked=True)) == []


@pytest.mark.parametrize(
    ("locked", "chosen", "expected"),
    [
        ([LockedFile(ANY.filename, {"sha256": "11"})], [ANY], []),
        ([LockedFile(None, {"sha256": "22"}), LockedFile(None, {"sha256": "44"})], [LINUX], []),
        ([LockedFile(None, {"sha256": "44"})], [SDIST], [RemarkKind.FROM_SDIST]),
        ([LockedFile(ANY.filename, {"sha256": "99"})], [ANY], [RemarkKind.OTHER_HASH]),
        ([LockedFile(None, {"sha256": "99"})], [ANY, LINUX], [RemarkKind.MISSING_FILE]),
        ([LockedFile("gone.whl"), LockedFile(ANY.filename)], [ANY], [RemarkKind.MISSING_FILE]),
        ([LockedFile(None, {"md5": "00"})], [ANY, LINUX], []),
    ],
)
def test_only_files_in_the_lock_count(locked, chosen, expected) -> None:
    pin = Pin("a", "a", "1", "line 3", files=tuple(locked))
    [release], remarks = pinned_releases([pin], Files(ANY, LINUX, SDIST), KNOWN, ANY_ENVIRONMENT)
    assert list(release.chosen) == chosen
    assert [remark.kind for remark in remarks] == expected


@pytest.mark.parametrize("environment", [ANY_ENVIRONMENT, named_environment("3.12", "linux")])
def test_both_snapshots_give_the_same_answer(publisher: Publisher, tmp_path: Path, environment: Environment) -> None:
    with open_latest("depgraph", publisher.storage) as depgraph, open_latest("modules", publisher.storage) as modules:
        readers: dict[type[DatasetReader], DatasetReader] = {type(one): one for one in (depgraph, modules)}
        published = PublishedSnapshot(readers.__getitem__, lambda _: pytest.fail("no hint is needed"))
        past = CatalogSnapshot(publisher.small.catalog, 100)
        lock = tmp_path / "requirements.txt"
        lock.write_text("demo==1.0.0\ndemo_b==1.0\nnope==1\n./local\n")
        pins = LockedPins(read_lock(lock), environment)
        found = pins.answer(published)
        assert found == pins.answer(past)
        assert [release.modules for release in found.releases] == [{"demo"}, {"demo.b"}]
        assert found.pip_order == ("demo-b", "demo")
        texts = {remark.kind: remark.text.removeprefix(f"{lock}:") for remark in found.remarks}
        assert unnamed(texts[RemarkKind.UNKNOWN], "3", "nope==1", "100") == []
        assert texts.keys() == {RemarkKind.ELSEWHERE, RemarkKind.UNKNOWN, RemarkKind.FROM_SDIST}
        lock.write_text("demo==7\n")
        for snapshot in (published, past):
            [remark, *_] = LockedPins(read_lock(lock), environment).answer(snapshot).remarks
            assert unnamed(remark.text, "demo==7", "100", "1") == []
