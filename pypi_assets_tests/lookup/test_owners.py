"""Imports lead to their longest known module, and to all that provide it.

`questions/test_snapshots.py` compares with the catalog.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import owners as module
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.owners import SerialsDifferError, TooManyCandidatesError, owners, owners_at, prefixes
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

REJECTED = ("pip skips: odd", "uv skips: odd")
FILES = [
    ("PyYAML", "6.0", ("yaml", "yaml.loader", "_yaml"), ()),
    ("copies", "1.0", ("copies", "yaml", "yaml.loader", "tests"), ()),
    ("app", "1.0", ("app", "tests", "tests.unit"), ("PyYAML>=6", "google-cloud-storage")),
    ("tool", "1.0", ("tool",), ("pyyaml",)),
    ("google", "3.0", ("google", "googlesearch"), ()),
    ("google-cloud-core", "2.0", ("google", "google.cloud", "google.cloud.client"), ()),
    (
        "google-cloud-storage",
        "2.0",
        ("google", "google.cloud", "google.cloud.storage", "google.cloud.storage.blob"),
        ("google-cloud-core",),
    ),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path_factory.mktemp("catalog"))
    for serial, (project, version, modules, requires) in enumerate(FILES, 1):
        small.add(serial, project, version, f"{project}-{version}.zip", modules=modules, requires_dist=requires)
    small.add(20, "copies", "2.0", "copies-2.0.zip", modules=("copies",))
    small.add(21, "types-PyYAML", "6.0", "types_PyYAML-6.0.zip", modules=(), stubs=("yaml", "yaml.loader"))
    small.add(22, "other-stubs", "1.0", "other_stubs-1.0.zip", modules=(), stubs=("other", "other.a"))
    small.add(23, "new", "1.0", "new-1.0.zip", modules=("new", "new_tests"), import_names=("new",))
    small.add(24, "app", "3.0", "app-3.0.zip", modules=("app", "app.later"), refusals=REJECTED)
    small.add(25, "rejected", "1", "rejected-1.zip", modules=("tool", "lost"), stubs=("vain",), refusals=REJECTED)
    small.add(26, "vain-stubs", "1", "vain_stubs-1.zip", modules=(), stubs=("vain",), refusals=REJECTED)
    small.complete(100)
    yield small
    small.catalog.close()


@pytest.fixture(scope="module")
def storage(small: SmallCatalog, tmp_path_factory: pytest.TempPathFactory) -> Storage:
    storage = open_storage(tmp_path_factory.mktemp("storage").as_uri())
    full_dump(small.catalog, storage, 1)
    for dataset in ("modules", "depgraph"):
        build_version(dataset, storage=storage, catalog=small.catalog)
    return storage


@pytest.fixture(scope="module")
def readers(storage: Storage) -> Iterator[tuple[ModulesReader, DepgraphReader]]:
    with open_latest(ModulesReader, storage) as modules, open_latest(DepgraphReader, storage) as depgraph:
        yield modules, depgraph


Readers = tuple[ModulesReader, DepgraphReader]


def found(readers: Readers, name: str) -> tuple[str | None, list[str]]:
    [one] = owners(*readers, [name])
    assert one["import"] == name
    assert one["serial"] == 100
    assert [candidate["rank"] for candidate in one["candidates"]] == [*range(1, len(one["candidates"]) + 1)]
    return one["module"], [candidate["normalized"] for candidate in one["candidates"]]


@pytest.mark.parametrize(
    ("name", "module", "best"),
    [
        ("yaml", "yaml", "pyyaml"),
        ("yaml.loader.Loader", "yaml.loader", "pyyaml"),
        ("google.cloud.storage.blob", "google.cloud.storage.blob", "google-cloud-storage"),
        ("google.cloud.storage.blob.Blob.upload", "google.cloud.storage.blob", "google-cloud-storage"),
        ("google.cloud.client", "google.cloud.client", "google-cloud-core"),
        ("googlesearch", "googlesearch", "google"),
        ("other.a.b", "other.a", "other-stubs"),
        ("app.later", "app", "app"),  # the release that has it is not installable
        ("tool", "tool", "tool"),
    ],
)
def test_the_longest_known_module_decides(readers: Readers, name: str, module: str, best: str) -> None:
    known, candidates = found(readers, name)
    assert known == module
    assert candidates[0] == best


def test_releases_that_no_installer_takes_are_not_counted(readers: Readers, small: SmallCatalog) -> None:
    names = ["app", "app.later", "tool", "lost", "vain"]
    published = owners(*readers, names)
    assert published == owners_at(small.catalog, 100, names)
    [app] = published[0]["candidates"]
    assert (app["versions"], app["reasons"]["releases"], app["reasons"]["newest_provides"]) == (["1.0"], 1, True)
    assert [one["project"] for one in published[2]["candidates"]] == ["tool"]


@pytest.mark.parametrize(
    "name", ["unknown", "", ".", "yam", "yaml2.loader", "not-a-name", "yaml\0", "\udc80", "m" * 9_999, "lost", "vain"]
)
def test_of_what_is_not_known_there_is_no_candidate(readers: Readers, name: str) -> None:
    assert found(readers, name) == (None, [])


def test_all_candidates_come_with_their_reasons(readers: Readers) -> None:
    [one] = owners(*readers, ["yaml"])
    pyyaml, copies, stubs = one["candidates"]
    assert (pyyaml["project"], pyyaml["versions"]) == ("PyYAML", ["6.0"])
    assert pyyaml["reasons"] == {
        "name_matches": False,
        "dependents": 2,
        "first_live_serial": 1,
        "releases_providing": 1,
        "releases": 1,
        "newest_provides": True,
        "declared": None,
        "junk_root": False,
        "quarantined": False,
        "stub_only": False,
    }
    assert copies["reasons"]["dependents"] == 0
    assert (copies["reasons"]["releases_providing"], copies["reasons"]["releases"]) == (1, 2)
    assert not copies["reasons"]["newest_provides"]
    assert stubs["normalized"] == "types-pyyaml"
    assert stubs["reasons"]["stub_only"]
    assert stubs["score"] < copies["score"] < pyyaml["score"]


def test_junk_roots_and_declared_names_are_named(readers: Readers) -> None:
    tests, declared, undeclared = owners(*readers, ["tests.unit", "new", "new_tests"])
    assert [one["reasons"]["junk_root"] for one in tests["candidates"]] == [True]
    assert [one["reasons"]["declared"] for one in declared["candidates"]] == [True]
    assert [one["reasons"]["declared"] for one in undeclared["candidates"]] == [False]


def test_a_batch_has_an_answer_for_each_name_in_its_order(readers: Readers) -> None:
    names = ["yaml", "tests", "yaml", "unknown", "yaml.loader"]
    answers = owners(*readers, names)
    assert [one["import"] for one in answers] == names
    assert answers == [answer for name in names for answer in owners(*readers, [name])]
    assert owners(*readers, []) == []
    with pytest.raises(TypeError, match="str"):
        owners(*readers, [b"yaml"])  # type: ignore[list-item]


def test_no_more_than_the_best_are_returned(readers: Readers) -> None:
    [whole], [best] = owners(*readers, ["yaml"]), owners(*readers, ["yaml"], most=2)
    assert best == {**whole, "candidates": whole["candidates"][:2]}
    [stubs] = owners(*readers, ["other"], most=1)
    assert len(stubs["candidates"]) == 1


def test_a_batch_is_bounded(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_IN_A_BATCH", 5)
    assert len(owners(*readers, ["yaml"])[0]["candidates"]) == 3
    for names in (["yaml", "yaml"], ["yaml", "yaml.a", "tests"]):
        with pytest.raises(TooManyCandidatesError, match=r"\b5\b"):
            owners(*readers, names)
    monkeypatch.setattr(module, "MOST_IN_A_BATCH", 2)
    assert len(owners(*readers, ["yaml"])[0]["candidates"]) == 3
    assert len(owners(*readers, ["yaml", "yaml"], most=1)) == 2


def test_prefixes_are_bounded() -> None:
    assert list(prefixes("a.b.not-a-name.c")) == ["a.b", "a"]
    assert list(prefixes("größe.x")) == ["größe.x", "größe"]
    assert len(list(prefixes(".".join("a" * 10_000)))) == 32
    assert list(prefixes(f"a.{'b' * 600}")) == ["a"]
    assert list(prefixes(f"{'b' * 500}.a")) == ["b" * 500]
    assert list(prefixes("a..b")) == ["a"]


def test_datasets_of_different_serials_give_no_answer(tmp_path: Path) -> None:
    small = small_catalog(tmp_path)
    storage = open_storage((tmp_path / "storage").as_uri())
    small.add(1, "demo", "1.0", "demo-1.0.zip")
    small.complete(10)
    full_dump(small.catalog, storage, 1)
    for dataset in ("modules", "depgraph"):
        build_version(dataset, storage=storage, catalog=small.catalog)
    with open_latest(ModulesReader, storage) as modules, open_latest(DepgraphReader, storage) as depgraph:
        small.add(11, "other", "1.0", "other-1.0.zip", requires_dist=("demo",))
        write_range(small.catalog, storage, small.complete(20))
        build_version("depgraph", storage=storage, catalog=small.catalog)
        assert depgraph.refresh()
        with pytest.raises(SerialsDifferError, match=r"modules.*\b10\b.*depgraph.*\b20\b"):
            owners(modules, depgraph, ["demo"])
        build_version("modules", storage=storage, catalog=small.catalog)
        [one] = owners(modules, depgraph, ["demo"])
        assert one["serial"] == 20
        assert [candidate["reasons"]["dependents"] for candidate in one["candidates"]] == [1, 0]
    small.catalog.close()
