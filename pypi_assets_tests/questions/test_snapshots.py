"""All snapshots of a serial answer every question equally, or say which one can."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.published_sets import OpenSet, PublishedSets
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import Question, all_questions
from pypi_assets.questions.snapshot import OtherSnapshotError, Snapshot
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.test_at_serial import QUESTIONS as MODULES
from pypi_assets_tests.lookup.test_at_serial import batches, made_of
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

NAMES = {"module": [name for name in MODULES if name], "command": ["demo", "demo.a", "other", "unknown", "größe"]}
"""What each question is asked about."""
ONE_SIDED = {("command", False), ("command", True), ("module", True)}
"""Questions, and whether a beginning is asked for, that the catalog does not answer."""


@contextmanager
def published(storage: Storage) -> Iterator[OpenSet]:
    """Open the newest versions."""
    with ExitStack() as stack:
        opened = PublishedSets(storage).open_newest()
        assert opened is not None
        for reader in opened.readers.values():
            stack.callback(reader.close)
        yield opened


def answers(question: Question[Any], snapshot: Snapshot, *, prefix: bool) -> dict[str, object]:
    """Return what a snapshot answers about each name, with and without the newest versions alone."""
    found: dict[str, object] = {}
    for name in NAMES[question.name]:
        encodable = name.encode(errors="replace").decode()
        for latest in (False, True):
            values = {question.takes[0].name: encodable, "prefix": prefix, "latest": latest}
            answer = question.answer(snapshot, question.given(**values), None)
            found[f"{name!r} {latest}"] = answer.serial, list(answer.results)
    return found


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow])
@given(batches=batches)
def test_every_question_has_one_answer_at_a_serial(batches: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, storage = small_catalog(Path(folder)), open_storage((Path(folder) / "storage").as_uri())
        expected: dict[int, dict[str, dict[str, object]]] = {}
        for serial in made_of(small, batches):
            publish(small, storage)
            with published(storage) as opened:
                snapshot = PublishedSnapshot(opened.reader, nullcontext)
                expected[serial] = {
                    one.name: answers(one, snapshot, prefix=False)
                    for one in all_questions()
                    if (one.name, False) not in ONE_SIDED
                }
        for serial, of_questions in expected.items():
            past = CatalogSnapshot(small.catalog, serial)
            for question in all_questions():
                if question.name in of_questions:
                    assert answers(question, past, prefix=False) == of_questions[question.name]
        small.catalog.close()


def publish(small: SmallCatalog, storage: Storage) -> None:
    """Dump the catalog, and publish a version of each dataset."""
    full_dump(small.catalog, storage, 1)
    for dataset in DATASETS:
        build_version(dataset, storage=storage, catalog=small.catalog)


def test_what_the_catalog_cannot_answer_is_an_error_that_says_so(tmp_path: Path) -> None:
    small, storage = small_catalog(tmp_path), open_storage((tmp_path / "storage").as_uri())
    small.add(1, filename="demo-1.0.tar.gz", project="demo", version="1.0", modules=("demo", "demo.a"))
    small.complete(1)
    publish(small, storage)
    with published(storage) as opened:
        now, past = PublishedSnapshot(opened.reader, nullcontext), CatalogSnapshot(small.catalog, 1)
        for question in all_questions():
            for prefix in (False, True):
                assert answers(question, now, prefix=prefix)
                if (question.name, prefix) in ONE_SIDED:
                    with pytest.raises(OtherSnapshotError):
                        answers(question, past, prefix=prefix)
                else:
                    assert answers(question, past, prefix=prefix) == answers(question, now, prefix=prefix)
    small.catalog.close()


def test_pages_of_beginnings_follow_each_other(tmp_path: Path) -> None:
    small, storage = small_catalog(tmp_path), open_storage((tmp_path / "storage").as_uri())
    for number, project in enumerate(("Demo.Pkg", "other", "third"), 1):
        small.add(number, filename=f"{project}-1.0.tar.gz", project=project, version="1.0", modules=("a", "ab", "b"))
    small.complete(3)
    publish(small, storage)
    [question] = [one for one in all_questions() if one.name == "module"]
    with published(storage) as opened:
        snapshot = PublishedSnapshot(opened.reader, nullcontext)
        whole = question.answer(snapshot, question.given(module="a", prefix=True), None)
        assert isinstance(whole, Stream)
        results = list(whole.results)
        assert len(results) == 6
        for cut, last in enumerate(results, 1):
            rest = question.answer(snapshot, question.given(module="a", prefix=True), question.sort_key(last))
            assert list(rest.results) == results[cut:]
        assert isinstance(question.answer(snapshot, question.given(module="a"), None), Answer)
    small.catalog.close()
