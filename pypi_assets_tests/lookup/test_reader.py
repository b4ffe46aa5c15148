"""Long-lived readers: they move to newer versions while threads and processes query, and delete old copies."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import DepgraphReader, ModulesReader, latest, open_latest
from pypi_assets.lookup.reader import require_text
from pypi_assets.storage.store import Storage, StorageError
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.publisher import Publisher


@pytest.mark.usefixtures("binding")
def test_reader_moves_to_newer_versions_on_refresh(publisher: Publisher) -> None:
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
    with pytest.raises(LeveldbError, match="modules"):
        reader.module("demo")


@pytest.mark.nightly
@pytest.mark.usefixtures("binding")
@pytest.mark.parametrize("dataset", ["modules", "depgraph"])
def test_stream_and_its_version_can_be_collected_together(
    publisher: Publisher, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LevelDB is closed after the last iterator, in whatever order the garbage collector finalizes them."""
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    reader = open_latest(dataset, publisher.storage)
    stream = reader.modules() if isinstance(reader, ModulesReader) else reader.projects()
    next(stream.results)
    reader.close()
    cycle: list[object] = [stream, reader]
    cycle.append(cycle)
    gc.disable()  # or it could collect them before the copies are counted
    del reader, stream, cycle
    copies = publisher.private_copies()
    gc.enable()
    assert copies == 1
    gc.collect()
    assert publisher.private_copies() == 0
    assert not unraisable


@pytest.mark.usefixtures("binding")
def test_failed_answer_and_its_version_can_be_collected_together(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    reader = open_latest("modules", publisher.storage)

    def fail(db: Database) -> None:
        with db.iterator(prefix=b"") as records:
            raise LeveldbDamagedError(f"as far as this test goes: {next(records)!r}")

    with pytest.raises(LeveldbDamagedError) as failed:
        reader._read(fail)
    cycle: list[object] = [reader, failed.value]
    cycle.append(cycle)
    del reader, failed, cycle
    gc.collect()
    assert not unraisable
    assert publisher.private_copies() == 0


def test_stream_open_at_exit_leaves_no_copy(publisher: Publisher) -> None:
    program = (
        "import sys; from pypi_assets.lookup import open_latest;"
        "reader = open_latest('modules', sys.argv[1]); stream = reader.modules(); next(stream.results)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(publisher.storage.root)], check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, publisher.private_copies()) == ("", "", 0)


@pytest.mark.nightly
@pytest.mark.usefixtures("binding")
def test_threads_get_answers_while_versions_are_published(publisher: Publisher) -> None:
    answered: list[set[int]] = [set() for _ in range(4)]
    problems: list[Exception] = []
    end = threading.Event()

    def query(versions: set[int]) -> None:
        try:
            while not end.is_set():
                answer = reader.module("demo")
                releases = [len(result["versions"]) for result in answer.results if result["project"] == "other"]
                assert releases == ([(answer.serial - 100) // 10] if answer.serial > 100 else [])
                assert all(module["module"].startswith("demo") for module in reader.modules("demo"))
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
        for thread in threading.enumerate():  # a final query
            if thread.name == "newer modules":
                thread.join()
        assert publisher.private_copies() == 1
    assert publisher.private_copies() == 0


def test_failed_refresh_is_reported_and_changes_nothing(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_late_detected_corruption_falls_back_to_a_valid_version(publisher: Publisher) -> None:
    for number in range(200):
        publisher.small.add(101, "demo", f"2.{number}", f"demo-2.{number}-py3-none-any.whl")
    publisher.publish()
    newest = build_version("depgraph", storage=publisher.storage, catalog=publisher.small.catalog, from_scratch=True)
    damage_a_block(publisher.storage, newest.version)
    with open_latest("depgraph", publisher.storage, check_hashes=False) as reader:
        assert reader.version == newest.version  # no reader has noticed yet
        answer = reader.project("demo")
        assert (len(answer.results), answer.version) == (201, newest.version - 1)
        assert len(reader.skipped) == 1
        assert str(newest.version) in reader.skipped[0]
        assert not reader.refresh()
    with open_latest("depgraph", publisher.storage, check_hashes=False) as reader:
        with pytest.raises(LeveldbDamagedError):
            list(reader.projects())
        for version in (newest.version - 1, 2):
            publisher.storage.delete(f"depgraph/input_lists/{version:05}")
        with pytest.raises(LeveldbError, match="depgraph"):
            reader.project("demo")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_process_must_open_its_own_reader(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as reader:
        process = os.fork()
        if process == 0:
            signal.alarm(30)
            try:
                reader.module("demo")
            except LeveldbError:
                reader.close()
                os._exit(0)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        assert publisher.private_copies() == 1
        assert len(reader.module("demo").results) == 1


_MORE: dict[str, tuple[object, ...]] = {"module_of_few": (1,), "names_from": (1,), "stubs": ((),)}
"""What queries take in addition to a name."""


@pytest.mark.parametrize("wrong", [None, b"demo", bytearray(b"demo"), 5, ["demo"]])
def test_unencodable_name_is_rejected_by_name(publisher: Publisher, wrong: object) -> None:
    for dataset in DATASETS.values():
        if dataset.name not in ("modules", "depgraph"):
            build_version(dataset.name, storage=publisher.storage, catalog=publisher.small.catalog)
        with open_latest(dataset.name, publisher.storage) as reader:
            queries = {name for name, value in vars(type(reader)).items() if callable(value) and name[0] != "_"}
            queries -= {"most_required", "newest", "edges", "check", "listed", "top_level_names"}  # these take no name
            queries -= {"overviews", "dependents_of_each"}  # these take several
            assert queries
            for query in queries | ({"suggest", "names_from"} if reader.names_start else set()):
                with pytest.raises(TypeError, match=rf"\b{query}\b.*\b{type(wrong).__name__}\b"):
                    getattr(reader, query)(wrong, *_MORE.get(query, ()))
    with pytest.raises(TypeError, match=r"module\b.*bytes"):
        require_text("module", b"demo")  # type: ignore[arg-type]
    with open_latest("depgraph", publisher.storage) as depgraph, pytest.raises(TypeError, match="project"):
        depgraph.project("demo", 1.0)


@given(wanted=st.text("demobthr-_.DEB", max_size=7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
def test_suggestions_are_names_of_the_dataset(publisher: Publisher, wanted: str) -> None:
    with (
        open_latest(ModulesReader, publisher.storage) as modules,
        open_latest(DepgraphReader, publisher.storage) as depgraph,
    ):
        assert set(modules.suggest(wanted)) <= {"demo", "demo.b"} - {wanted}
        assert set(depgraph.suggest(wanted)) <= {"demo", "demo-b"} - {wanted}


def test_suggestions_are_the_nearest_names(publisher: Publisher) -> None:
    with open_latest(ModulesReader, publisher.storage) as modules:
        assert modules.suggest("demmo") == ("demo",)
        assert modules.suggest("Demo-B") == ("demo.b",)
        assert modules.suggest("something") == ()
    with open_latest(DepgraphReader, publisher.storage) as depgraph:
        assert depgraph.suggest("Demo_C") == ("demo-b",) == depgraph.suggest("demo.c")
        assert depgraph.suggest("dem") == ("demo",)
        assert depgraph.suggest("demo", most=0) == ()
