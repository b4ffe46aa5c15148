"""A dataset needs only an entry, its records and its reader. This works for datasets of other packages too."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypedDict, cast

import pytest

import pypi_assets.cli.leveldb  # noqa: F401 - its choices are the datasets that are registered when it is imported
from pypi_assets.leveldbs.datasets.dataset import Change, Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import Row, key, prefix, records_of
from pypi_assets.lookup.answers import Answer
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.reader import DatasetReader
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import MODULES, QUESTIONS, Accepts, Parameters, question
from pypi_assets.questions.snapshot import After, Found, OtherSnapshotError, Snapshot
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import commands, index  # noqa: F401
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.served_index import ServedIndex


def change(db: Database | None, project: str, rows: list[Row]) -> Change:
    """Return the records of a dataset that maps kinds of files to files: `k KIND PROJECT FILENAME`."""
    before = {}
    if db:
        with db.iterator(prefix=b"k") as records:
            of_project = {record: value for record, value in records if record.split(b"\0")[2] == project.encode()}
        changed = {str(row["filename"]).encode() for row in rows}
        before = {record: value for record, value in of_project.items() if record.split(b"\0")[3] in changed}
    live = [row for row in rows if not row["tombstone"]]
    return before, {key("k", row["kind"], project, row["filename"]): b"1" for row in live}


class KindResult(TypedDict):
    kind: str
    filename: str


class KindsReader(DatasetReader):
    dataset = "kinds"

    def kind(self, name: str) -> Answer[KindResult]:
        def found(db: Database) -> Iterator[KindResult]:
            for record_key, _ in records_of(db, prefix("k", name)):
                yield KindResult(kind=name, filename=record_key.decode().split("\0")[3])

        return self._answer(KindResult, found)


READER = KindsReader


@dataclass(frozen=True)
class KindParameters(Parameters):
    """The kind to list."""

    kind: Annotated[str, Accepts(text="a kind of file, such as wheel", min_length=1)]


@question(
    "kind",
    example="wheel",
    result=KindResult,
    columns=lambda _given: ("filename",),
    nothing_found=lambda given: f"no file is a {given.kind}",
)
def kind(snapshot: Snapshot, given: KindParameters, _after: After = None) -> Found[KindResult]:
    """List the files of a kind."""
    if not isinstance(snapshot, PublishedSnapshot):
        raise OtherSnapshotError("only LevelDBs have kinds")
    return cast("Answer[KindResult]", snapshot.reader(KindsReader).kind(given.kind))


KINDS = Dataset(
    name="kinds",
    format=1,
    description="Which files are of a kind.",
    columns=("filename", "tombstone", "kind"),
    change=change,
    reader=__name__,
    key_schema={"k KIND FILENAME": "nothing"},
)


def test_foreign_dataset_is_built_listed_and_queried(
    commands: Commands,  # noqa: F811
    index: ServedIndex,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(DATASETS, "kinds", KINDS)
    monkeypatch.setitem(MODULES, "kind", __name__)
    monkeypatch.setitem(QUESTIONS, "kind", kind)
    index.wheel("demo", "1.0")
    index.sdist("demo", "1.0")
    commands.build_versions()
    index.wheel("demo", "2.0")
    index.history.remove_release("demo", "1.0")
    for step in (("crawl", "incremental"), ("dump", "incremental"), ("leveldb", "update")):
        commands.done(*step)
    listed = [one for one in commands.json("leveldb", "list") if one["dataset"] == "kinds"]
    assert [one["records"] for one in listed] == [2, 1]
    assert all(one["ok"] for one in commands.json("leveldb", "verify", "--deep"))
    assert commands.json("status")["leveldbs"]["kinds"]["serial"] == index.serial
    assert commands.json("lookup", "kind", "wheel") == [{"kind": "wheel", "filename": "demo-2.0-py3-none-any.whl"}]
    assert mentions(commands.done("lookup", "kind", "sdist").stderr, "sdist", index.serial)
    assert "List the files of a kind." in commands.done("lookup", "kind", "--help").stdout
    assert "  kind " in commands.done("lookup", "--help").stdout
    assert commands.refused("lookup", "kind", "wheel", "--at", index.serial)
    storage = open_storage((commands.home / "storage").as_uri())
    for dataset in (KindsReader, "kinds"):
        with open_latest(dataset, storage) as reader:
            assert len(reader.kind("wheel").results) == 1
