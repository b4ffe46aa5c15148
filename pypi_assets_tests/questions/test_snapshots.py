"""All snapshots of a serial give the same answer to every question, or name the snapshot that can answer."""

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.project_answers import facts_at
from pypi_assets.lookup.published_sets import OpenSet, PublishedSets
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import ParameterError, Question, all_questions, find_question
from pypi_assets.questions.snapshot import OtherSnapshotError, Snapshot
from pypi_assets.resolve.questions import ResolveError
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.lookup.drawn_catalogs import QUESTIONS as MODULES
from pypi_assets_tests.lookup.drawn_catalogs import REQUIRED, batches, made_of
from pypi_assets_tests.prepared import publish
from pypi_assets_tests.small_catalog import small_catalog

NAMES = {
    "module": [name for name in MODULES if name],
    "owners": [*(name for name in MODULES if name), "demo.a.b.c"],
    "purl": ["pkg:pypi/demo-pkg", "pkg:pypi/other@2", "pkg:pypi/third@10?file_name=x", "pkg:npm/demo"],
    "command": ["demo", "demo.a", "other", "unknown", "größe"],
    "project": ["demo", "Demo_Pkg", "demo-pkg==1", "other==2", "third==10", "unknown"],
    "dependents": [name for name in REQUIRED if re.fullmatch("[A-Za-z0-9._-]+", name)],
    "hash": [hashlib.sha256(name.encode()).hexdigest() for name in ("demo.pkg-1.0.tar.gz", "other-2.tar.gz", "none")],
    "impact": ["demo.pkg", "demo.pkg==1", "other==2", "Third", "unknown"],
    "breaks": ["demo.pkg==1", "other==2", "unknown==1"],
    "resolve": ["demo.pkg", "other third", "Third>1", "other==2 demo-pkg", "demo.pkg>7", "unknown"],
    "collisions": ["demo.pkg==1 other==2", "other==2 third==10", "third==10 unknown==1"],
}
"""What questions are asked about; for one with a body, the texts of a list."""
BY_ARGUMENT = {
    "PROJECT": ["demo.pkg", "Other", "third", "unknown"],
    "NAME==VERSION": ["demo-pkg==1", "other==2", "third==10", "unknown==1"],
}
"""What other questions are asked about, by what their commands call the argument."""
OF_PUBLISHED = {"command"}
"""Questions that the catalog does not answer at all."""
_FEW = 3
_PARTS = 4
"""What workers can share of many histories."""

VERSIONS = {"dependents": ("version", "excludes")}
"""The parameters of a question that take a version."""


def variants(question: Question[Any]) -> Iterator[dict[str, object]]:
    """Yield valid combinations of the parameters after the first: each flag off and on."""
    flags = [parameter.name for parameter in question.takes[1:] if parameter.type is bool]
    for values in product((False, True), repeat=len(flags)):
        parameters: dict[str, object] = dict(zip(flags, values, strict=True))
        yield parameters
        for name in VERSIONS.get(question.name, ()):
            yield parameters | {name: "1"}
        if parameters.get("transitive"):
            yield parameters | {"depth": 1}


def names_of(question: Question[Any]) -> list[str]:
    """Return the names to ask a question about."""
    return NAMES.get(question.name) or BY_ARGUMENT.get(question.argument) or [question.example, "demo", "unknown"]


def subject(question: Question[Any], name: str) -> dict[str, Any]:
    """Return the parameters for a name."""
    if question.has_body:
        return {question.takes[0].name: tuple(name.split())}
    return dict(question.split(name)) if question.split else {question.takes[0].name: name}


def of_catalog() -> dict[str, bool]:
    """Return whether questions declare that they need a catalog, by the keys of `all_answers`."""
    needs_catalog = {}
    for question in all_questions():
        named = subject(question, names_of(question)[0])
        for values in variants(question):
            with suppress(ParameterError):  # invalid combination
                needs_catalog[f"{question.name} {values}"] = question.needs_catalog(question.given(**named, **values))
    return needs_catalog


@contextmanager
def published(storage: Storage) -> Iterator[OpenSet]:
    """Open the newest versions."""
    with ExitStack() as stack:
        opened = PublishedSets(storage).open_newest()
        assert opened is not None
        for reader in opened.readers.values():
            stack.callback(reader.close)
        yield opened


def answers(
    question: Question[Any], snapshot: Snapshot, values: dict[str, object], names: list[str]
) -> dict[str, object]:
    """Return a snapshot's answers about each name."""
    found: dict[str, object] = {}
    for name in ["0" if question.name == "hash" else "d"] if values.get("prefix") else names:
        named = subject(question, name.encode(errors="replace").decode())
        try:
            answer = question.answer(snapshot, question.given(**named, **values), None)
        except ResolveError as error:
            found[name] = type(error), str(error)
            continue
        results = list(answer.results)
        if question.name == "resolve" and (proof := results[0]["proof"]) is not None:
            del proof["hints"]  # these hints name projects of the newest serial
        found[name] = answer.serial, results if not values.get("transitive") else sorted(map(str, results))
    return found


def all_answers(snapshot: Snapshot, drawn: Random | None = None) -> dict[str, object]:
    """Return the answers to all questions, or None if only the other snapshot can answer.

    Each question is asked about all names, without flags and with all combinations. With `drawn`, a few are sampled.
    """
    found: dict[str, object] = {}
    for question in all_questions():
        plain, *others = variants(question)
        names = names_of(question)
        if drawn is not None:
            names = drawn.sample(names, min(_FEW, len(names)))
        for values in (plain, *(others if drawn is None else drawn.sample(others, min(_FEW, len(others))))):
            try:
                found[f"{question.name} {values}"] = answers(question, snapshot, values, names)
            except ParameterError:  # invalid combination
                continue
            except OtherSnapshotError:
                found[f"{question.name} {values}"] = None
    return found


@pytest.mark.parametrize("part", range(_PARTS))
@settings(max_examples=examples(170 // _PARTS), suppress_health_check=[HealthCheck.too_slow])
@given(batches=batches, seed=st.integers(0, 2**32 - 1))
def test_questions_have_one_answer_at_a_serial(part: int, batches: Any, seed: int) -> None:
    of_both = {key.split()[0] for key, needs_catalog in of_catalog().items() if not needs_catalog} - OF_PUBLISHED
    with tempfile.TemporaryDirectory() as folder:
        small, storage = small_catalog(Path(folder)), open_storage((Path(folder) / "storage").as_uri())
        expected: dict[int, dict[str, object]] = {}
        for serial in made_of(small, batches):
            publish(small.catalog, storage)
            with published(storage) as opened:
                facts = partial(facts_at, small.catalog, serial)
                expected[serial] = all_answers(PublishedSnapshot(opened.reader, nullcontext, facts), Random(seed))
        for serial, newest in expected.items():
            past = all_answers(CatalogSnapshot(small.catalog, serial), Random(seed))
            assert past.keys() == newest.keys()
            both = [key for key in past if past[key] is not None and newest[key] is not None]
            assert {key.split()[0] for key in both} == of_both
            for key in both:
                assert past[key] == newest[key], key
        small.catalog.close()


def test_each_question_is_answered_or_referred_to_the_other_snapshot(tmp_path: Path) -> None:
    small, storage = small_catalog(tmp_path), open_storage((tmp_path / "storage").as_uri())
    small.add(1, filename="demo-1.0.tar.gz", project="demo", version="1.0", modules=("demo", "demo.a"))
    small.complete(1)
    publish(small.catalog, storage)
    with published(storage) as opened:
        now, past = PublishedSnapshot(opened.reader, nullcontext), CatalogSnapshot(small.catalog, 1)
        newest, earlier = all_answers(now), all_answers(past)
    assert newest.keys() == earlier.keys()
    assert all(newest[key] is not None or earlier[key] is not None for key in newest)
    assert {key.split()[0] for key in earlier if earlier[key] is None and "'prefix': True" not in key} == OF_PUBLISHED
    assert {key for key in newest if newest[key] is None} == {key for key, needs in of_catalog().items() if needs}
    small.catalog.close()


def test_pages_of_prefix_results_are_consecutive(tmp_path: Path) -> None:
    small, storage = small_catalog(tmp_path), open_storage((tmp_path / "storage").as_uri())
    for number, project in enumerate(("Demo.Pkg", "other", "third"), 1):
        small.add(number, filename=f"{project}-1.0.tar.gz", project=project, version="1.0", modules=("a", "ab", "b"))
    small.complete(3)
    publish(small.catalog, storage)
    question = find_question("module")
    with published(storage) as opened:
        snapshot = PublishedSnapshot(opened.reader, nullcontext)
        whole = question.answer(snapshot, question.given(module="a", prefix=True), None)
        assert isinstance(whole, Stream)
        results = list(whole.results)
        assert len(results) == 6
        sort_key = question.sort_key
        assert sort_key is not None
        for cut, last in enumerate(results, 1):
            rest = question.answer(snapshot, question.given(module="a", prefix=True), sort_key(last))
            assert list(rest.results) == results[cut:]
        assert isinstance(question.answer(snapshot, question.given(module="a"), None), Answer)
    small.catalog.close()
