"""Readers that live long: they move on to newer versions while threads and processes ask, and clean up behind them."""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.private_copy import copy_published, private_folder
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import Distribution, ModuleResult, ModulesReader, latest, open_latest
from pypi_assets.lookup.reader import OpenVersion
from pypi_assets.storage.store import Storage, StorageError, open_storage
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

DOCS = Path(__file__).parent.parent.parent / "docs"


class Publisher:
    """Publishes versions of `modules` and `depgraph`: as many modules `demo.N` as there have been versions."""

    def __init__(self, folder: Path) -> None:
        self.small: SmallCatalog = small_catalog(folder)
        self.storage: Storage = open_storage((folder / "storage").as_uri())
        self.serial = 100
        self.small.add(
            1, "demo", "1.0", "demo-1.0.tar.gz", modules=("demo",), requires_dist=("base", "b.c; extra=='x'")
        )
        self.small.add(2, "demo-b", "1.0", "demo_b-1.0.tar.gz", modules=("demo.b",), requires_dist=("base>1",))
        self.small.complete(self.serial)
        full_dump(self.small.catalog, self.storage, 1)
        self._build()

    def publish(self) -> int:
        """Returns the number of releases of `other` that the new version shows, of which each provides `demo`."""
        releases = self.serial // 10 - 9
        self.small.add(self.serial + 1, "other", f"{releases}", f"other-{releases}.tar.gz", modules=("demo",))
        self.serial += 10
        write_range(self.small.catalog, self.storage, self.small.complete(self.serial))
        self._build()
        return releases

    def _build(self) -> None:
        for dataset in ("modules", "depgraph"):
            build_version(dataset, storage=self.storage, catalog=self.small.catalog)

    def private_copies(self) -> int:
        return len([path for path in (self.storage.root / ".private").iterdir() if path.is_dir()])  # type: ignore[operator]


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Publisher]:
    publisher = Publisher(tmp_path)
    yield publisher
    publisher.small.catalog.close()


def test_prefixes_stream_in_order(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as modules, open_latest("depgraph", publisher.storage) as depgraph:
        stream = modules.modules("demo")
        assert (stream.version, stream.serial) == (1, 100)
        assert [(one["module"], one["project"]) for one in stream] == [("demo", "demo"), ("demo.b", "demo-b")]
        assert [one["module"] for one in modules.modules("demo.")] == ["demo.b"]
        assert [one["module"] for one in modules.modules()] == ["demo", "demo.b"]
        assert list(modules.modules("x")) == []
        assert [one["filename"] for one in depgraph.projects("DEMO_")] == ["demo_b-1.0.tar.gz"]
        assert len(list(depgraph.projects())) == 2
        found = [(one["required"], one["normalized"], one["extra"]) for one in depgraph.all_dependents("b")]
        assert found == [("b-c", "demo", ["1.0"]), ("base", "demo", []), ("base", "demo-b", [])]


def test_answers_as_frames(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as modules, open_latest("depgraph", publisher.storage) as depgraph:
        frame = modules.module("demo").frame()
        assert list(frame.columns) == list(ModuleResult.__annotations__)
        assert frame.to_dict("records") == list(modules.module("demo").results)
        assert frame.attrs == {"version": 1, "serial": 100}
        assert len(modules.modules("d").frame()) == 2
        nothing = depgraph.project("nope").frame()
        assert (len(nothing), list(nothing.columns)) == (0, list(Distribution.__annotations__))
        assert set(nothing.columns) == set(depgraph.project("demo").results[0])
        assert set(depgraph.dependents("nope").frame().columns) == set(depgraph.dependents("base").results[0])


def test_a_reader_moves_on_when_it_is_refreshed(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as reader:
        assert not reader.refresh()
        before = reader.module("demo")
        stream = reader.modules()
        first = next(stream.results)
        publisher.publish()
        assert reader.module("demo") == before
        assert publisher.private_copies() == 1
        assert reader.refresh()
        assert publisher.private_copies() == 2  # the stream is not at its end
        assert [first["module"], *(one["module"] for one in stream)] == ["demo", "demo.b"]
        del stream
        assert publisher.private_copies() == 1
        after = reader.module("demo")
        assert (len(after.results), after.version, after.serial) == (2, reader.version, publisher.serial)
        assert not reader.refresh()
    assert publisher.private_copies() == 0
    with pytest.raises(LeveldbError, match="reader of modules is closed"):
        reader.module("demo")


def test_threads_are_answered_while_versions_come(publisher: Publisher) -> None:
    answered: list[set[int]] = [set() for _ in range(4)]
    problems: list[Exception] = []
    end = threading.Event()

    def query(versions: set[int]) -> None:
        try:
            while not end.is_set():
                answer = reader.module("demo")
                releases = [len(one["versions"]) for one in answer.results if one["project"] == "other"]
                assert releases == ([(answer.serial - 100) // 10] if answer.serial > 100 else [])
                assert all(one["module"].startswith("demo") for one in reader.modules("demo"))
                versions.add(answer.serial)
        except (AssertionError, LeveldbError) as error:
            problems.append(error)

    with open_latest("modules", publisher.storage, refresh_every_s=0.01) as reader:
        threads = [threading.Thread(target=query, args=(versions,)) for versions in answered]
        for thread in threads:
            thread.start()
        for _ in range(4):
            publisher.publish()
            waited_until = time.monotonic() + 60
            while reader.serial != publisher.serial and not problems and time.monotonic() < waited_until:
                reader.module("demo")
        end.set()
        for thread in threads:
            thread.join()
        assert problems == []
        assert reader.serial == publisher.serial
        assert reader.refresh_problem is None
        assert all(len(versions) > 1 for versions in answered)
        for thread in threading.enumerate():  # a last look
            if thread.name == "newer modules":
                thread.join()
        assert publisher.private_copies() == 1
    assert publisher.private_copies() == 0


def test_a_failed_refresh_is_shown_and_changes_nothing(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered_until(problem: str | None) -> bool:
        deadline = time.monotonic() + 60
        while reader.refresh_problem != problem and time.monotonic() < deadline:
            assert len(reader.module("demo").results) == 1
        return reader.refresh_problem == problem

    def fail(*_: object) -> list[int]:
        raise StorageError("the store is away")

    with open_latest("modules", publisher.storage, refresh_every_s=0.01) as reader:
        with monkeypatch.context() as away:
            away.setattr(latest, "published_versions", fail)
            assert answered_until("the store is away")
        assert answered_until(None)


def damage_a_block(storage: Storage, version: int) -> None:
    published = read_published(storage, "depgraph", version)
    table = max(published.manifest.files, key=lambda file: file.size)
    path = storage.root / published.path / table.name  # type: ignore[operator]
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.unlink()  # others link to it
    path.write_bytes(content)


def test_damage_that_shows_late_leads_to_a_version_that_is_good(publisher: Publisher) -> None:
    for number in range(200):
        publisher.small.add(101, "demo", f"2.{number}", f"demo-2.{number}-py3-none-any.whl")
    publisher.publish()
    newest = build_version("depgraph", storage=publisher.storage, catalog=publisher.small.catalog, from_scratch=True)
    damage_a_block(publisher.storage, newest.version)
    with open_latest("depgraph", publisher.storage, check_hashes=False) as reader:
        assert reader.version == newest.version  # nobody knows yet
        answer = reader.project("demo")
        assert (len(answer.results), answer.version) == (201, newest.version - 1)
        assert len(reader.skipped) == 1
        assert reader.skipped[0].startswith(f"version {newest.version}: ")
        assert not reader.refresh()
    with open_latest("depgraph", publisher.storage, check_hashes=False) as reader:
        with pytest.raises(LeveldbDamagedError, match="cannot be read"):
            list(reader.projects())
        for version in (newest.version - 1, 2):
            publisher.storage.delete(f"depgraph/input_lists/{version:05}")
        with pytest.raises(LeveldbError, match="no version of depgraph to read"):
            reader.project("demo")


def test_a_module_that_points_to_no_answer_is_damage(publisher: Publisher) -> None:
    published = read_published(publisher.storage, "modules", 1)
    with private_folder(publisher.storage.root / ".private") as folder:  # type: ignore[operator]
        copy_published(publisher.storage, published, folder / "leveldb")
        with open_leveldb(folder / "leveldb", "a test") as db:
            assert db.get(b"m\0demo\0demo") == b"demo"
            db.delete(b"g\0demo\0demo")

            class OneVersion:
                dataset, skipped = "modules", dict[int, str]()

                def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion:
                    return OpenVersion(db, "a test", 1, 100, check_hashes, os.getpid())

            with ModulesReader(OneVersion(), check_hashes=True) as reader:
                assert len(reader.module("demo.b").results) == 1
                with pytest.raises(LeveldbDamagedError, match="a name points to it"):
                    reader.module("demo")
                with pytest.raises(LeveldbDamagedError, match="a name points to it"):
                    list(reader.modules("demo"))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_must_open_its_own_reader(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as reader:
        process = os.fork()
        if process == 0:
            signal.alarm(30)
            try:
                reader.module("demo")
            except LeveldbError as error:
                reader.close()
                os._exit(0 if "open one in each process" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        assert publisher.private_copies() == 1
        assert len(reader.module("demo").results) == 1


def test_the_examples_of_the_docs_run(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for dataset in DATASETS:
        build_version(dataset, storage=publisher.storage, catalog=publisher.small.catalog)
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (DOCS / "lookup.md").read_text(), re.DOTALL)
    assert len(examples) == 7
    for example in examples:
        exec(example, {})
    shown = capsys.readouterr().out
    assert "demo ['1.0']\nas of serial 100, from version 1\ndemo-1.0.tar.gz ['base', \"b.c; extra=='x'\"]\n" in shown
    assert "demo-b ['1.0'] [] []\n" in shown
    assert "demo demo demo ['1.0']\n" in shown
    assert "demo.b demo-b\n2 100\n" in shown
