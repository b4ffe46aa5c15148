"""Imports resolve to their longest known module and all of its providers, published and at a serial."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.lookup import import_owners as module
from pypi_assets.lookup.import_owners import TooManyCandidatesError, owners, prefixes
from pypi_assets.lookup.published_sets import PublishedSets
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.prepared import publish
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
    publish(small.catalog, storage, "modules", "depgraph")
    return storage


@pytest.fixture(scope="module")
def snapshot(storage: Storage) -> PublishedSnapshot:
    opened = PublishedSets(storage).open_newest()
    assert opened is not None
    return PublishedSnapshot(opened.reader, opened.opened)


def found(snapshot: PublishedSnapshot, name: str) -> tuple[str | None, list[str]]:
    [one] = owners(snapshot, [name])
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
def test_longest_known_module_decides(snapshot: PublishedSnapshot, name: str, module: str, best: str) -> None:
    known, candidates = found(snapshot, name)
    assert known == module
    assert candidates[0] == best


def test_uninstallable_releases_are_not_counted(snapshot: PublishedSnapshot, small: SmallCatalog) -> None:
    names = ["app", "app.later", "tool", "lost", "vain"]
    published = owners(snapshot, names)
    assert published == owners(CatalogSnapshot(small.catalog, 100), names)
    [app] = published[0]["candidates"]
    assert (app["versions"], app["reasons"]["releases"], app["reasons"]["newest_provides"]) == (["1.0"], 1, True)
    assert [candidate["project"] for candidate in published[2]["candidates"]] == ["tool"]


@pytest.mark.parametrize(
    "name", ["unknown", "", ".", "yam", "yaml2.loader", "not-a-name", "yaml\0", "\udc80", "m" * 9_999, "lost", "vain"]
)
def test_unknown_import_has_no_candidate(snapshot: PublishedSnapshot, name: str) -> None:
    assert found(snapshot, name) == (None, [])


def test_candidates_have_reasons(snapshot: PublishedSnapshot) -> None:
    [one] = owners(snapshot, ["yaml"])
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


def test_junk_roots_and_declared_names_are_named(snapshot: PublishedSnapshot) -> None:
    tests, declared, undeclared = owners(snapshot, ["tests.unit", "new", "new_tests"])
    assert [candidate["reasons"]["junk_root"] for candidate in tests["candidates"]] == [True]
    assert [candidate["reasons"]["declared"] for candidate in declared["candidates"]] == [True]
    assert [candidate["reasons"]["declared"] for candidate in undeclared["candidates"]] == [False]


def test_batch_is_answered_in_order(snapshot: PublishedSnapshot) -> None:
    names = ["yaml", "tests", "yaml", "unknown", "yaml.loader"]
    answers = owners(snapshot, names)
    assert [one["import"] for one in answers] == names
    assert answers == [answer for name in names for answer in owners(snapshot, [name])]
    assert owners(snapshot, []) == []
    with pytest.raises(TypeError, match="str"):
        owners(snapshot, [b"yaml"])  # type: ignore[list-item]


def test_only_the_best_candidates_are_returned(snapshot: PublishedSnapshot) -> None:
    [whole], [best] = owners(snapshot, ["yaml"]), owners(snapshot, ["yaml"], most=2)
    assert best == {**whole, "candidates": whole["candidates"][:2]}
    [stubs] = owners(snapshot, ["other"], most=1)
    assert len(stubs["candidates"]) == 1


def test_batch_size_is_bounded(snapshot: PublishedSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_IN_A_BATCH", 5)
    assert len(owners(snapshot, ["yaml"])[0]["candidates"]) == 3
    for names in (["yaml", "yaml"], ["yaml", "yaml.a", "tests"]):
        with pytest.raises(TooManyCandidatesError, match=r"\b5\b"):
            owners(snapshot, names)
    monkeypatch.setattr(module, "MOST_IN_A_BATCH", 2)
    assert len(owners(snapshot, ["yaml"])[0]["candidates"]) == 3
    assert len(owners(snapshot, ["yaml", "yaml"], most=1)) == 2


def test_prefixes_are_bounded() -> None:
    assert list(prefixes("a.b.not-a-name.c")) == ["a.b", "a"]
    assert list(prefixes("größe.x")) == ["größe.x", "größe"]
    assert len(list(prefixes(".".join("a" * 10_000)))) == 32
    assert list(prefixes(f"a.{'b' * 600}")) == ["a"]
    assert list(prefixes(f"{'b' * 500}.a")) == ["b" * 500]
    assert list(prefixes("a..b")) == ["a"]


def test_owners_match_the_serial(tmp_path: Path) -> None:
    small = small_catalog(tmp_path)
    small.add(1, "first", "1.0", "first-1.0.zip", modules=("demo", "demo.a"))
    small.add(2, "user", "1.0", "user-1.0.zip", modules=("user",), requires_dist=("first",))
    small.add(3, "second", "1.0", "second-1.0.zip", modules=("demo",))
    small.complete(5)
    small.remove(6, "first-1.0.zip")
    small.remove(7, "user-1.0.zip")
    small.add(8, "demo-stubs", "1", "demo_stubs-1.zip", modules=(), stubs=("demo", "demo.a"), import_names=())
    small.complete(10)

    def found(serial: int, name: str) -> tuple[str | None, list[tuple[str, int]]]:
        [one] = owners(CatalogSnapshot(small.catalog, serial), [name])
        candidates = one["candidates"]
        return one["module"], [
            (candidate["normalized"], candidate["reasons"]["dependents"]) for candidate in candidates
        ]

    assert found(0, "demo") == (None, [])
    assert found(1, "demo.a.b") == ("demo.a", [("first", 0)])
    assert found(3, "demo") == ("demo", [("first", 1), ("second", 0)])
    assert found(6, "demo.a.b") == ("demo", [("second", 0)])
    assert found(10, "demo.a.b") == ("demo", [("second", 0), ("demo-stubs", 0)])
    assert found(10, "user") == (None, [])
    several = owners(CatalogSnapshot(small.catalog, 3), ["demo", "demo.a", "user", "demo"])
    assert several == [
        owner
        for name in ("demo", "demo.a", "user", "demo")
        for owner in owners(CatalogSnapshot(small.catalog, 3), [name])
    ]
    small.catalog.close()
