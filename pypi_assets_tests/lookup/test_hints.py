"""Hints for unknown names, published and from the catalog."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from pypi_assets.lookup.catalog_hints import past_module_hints, past_project_hints, unknown_project_hints
from pypi_assets.lookup.commands_reader import CommandsReader
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.hints import (
    LONGEST_TEXT,
    Kind,
    Meaning,
    OpenOther,
    best_providers,
    command_hints,
    did_you_mean,
    listed,
    meanings,
    module_hints,
    project_hints,
    top_level,
)
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.providers import Provider
from pypi_assets.lookup.reader import DatasetReader
from pypi_assets.storage.store import Storage
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.prepared import published_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

SHA256 = "0123456789abcdef" * 4


WRITTEN_OUT = [
    (SHA256, "file", SHA256, None),
    (f"  sha256:{SHA256.upper()} ", "file", SHA256, None),
    ("requests==2.32.5", "release", "requests", "2.32.5"),
    ("requests[socks] === 2.32.5 ; python_version > '3'", "release", "requests", "2.32.5"),
    ("pip install requests==2.32.5", "release", "requests", "2.32.5"),
    ("python -m pip install -U 'requests>=2'", "project", "requests", None),
    ("uv add ruff", "project", "ruff", None),
    ("uvx http --help", "command", "http", None),
    ("import yaml as y", "import", "yaml", None),
    ("import google.cloud.storage, os", "import", "google.cloud.storage", None),
    ("from google.cloud import storage", "import", "google.cloud", None),
    ("pkg:pypi/django@4.2.1?arch=x", "release", "django", "4.2.1"),
    ("pkg:pypi/django", "project", "django", None),
    ("https://index.invalid/project/requests/2.32.5/", "release", "requests", "2.32.5"),
    ("https://index.invalid/simple/requests/", "project", "requests", None),
    ("six-1.17.0-py2.py3-none-any.whl", "release", "six", "1.17.0"),
    ("six-1.17.0.tar.gz", "release", "six", "1.17.0"),
]


def test_explicit_text_has_one_meaning(subtests: pytest.Subtests):
    for text, kind, name, version in WRITTEN_OUT:
        with subtests.test(text=text, kind=kind):
            assert meanings(text) == [Meaning(Kind(kind), name, version)]


PLAIN_NAMES = [
    ("yaml", ["import", "project", "command"]),
    ("google.cloud.storage", ["import", "project", "command"]),
    ("python-dateutil", ["project", "command"]),
    ("requests >= 2, < 3", ["project"]),
    ("demo:main", ["command"]),
    ("größe", ["import", "command"]),
    ("two words", []),
    ("", []),
    ("x" * (LONGEST_TEXT + 1), []),
    ("not-1.0-a-wheel.whl", ["project", "command"]),
]


def test_plain_name_may_have_several_meanings(subtests: pytest.Subtests):
    for text, kinds in PLAIN_NAMES:
        with subtests.test(text=text, kinds=kinds):
            assert [meaning.kind for meaning in meanings(text)] == kinds


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """Return a storage with all datasets of a few projects. Each module is also a command of the same name."""
    small = small_catalog(tmp_path)
    small.add(1, "PyYAML", "6.0", "PyYAML-6.0.tar.gz", modules=("_yaml", "yaml", "yaml.loader"))
    small.add(2, "requests", "2.0", "requests-2.0.tar.gz", modules=("requests",), requires_dist=("idna",))
    small.add(3, "requests", "10.0", "requests-10.0.tar.gz", modules=("requests",))
    small.add(4, "vendors-it-all", "1", "vendors-it-all-1.tar.gz", modules=("vendored", "yaml"))
    small.complete(10)
    storage = published_storage(small.catalog, tmp_path)
    small.catalog.close()
    return storage


@pytest.fixture
def open_other(storage: Storage) -> OpenOther:
    @contextmanager
    def opened(dataset: str) -> Iterator[DatasetReader]:
        with open_latest(dataset, storage) as reader:
            yield reader

    return opened


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("yamll", ["yaml"]),
        ("Yaml", ["yaml"]),
        ("pyyaml", ["pyyaml", "yaml", "_yaml"]),
        ("vendors.it_all", ["vendors.it_all", "vendored", "yaml"]),
        ("yaml.no.such", ["yaml", "no.such"]),
        ("something", []),
        ("something.else", []),
    ],
)
def test_hints_for_a_module(storage: Storage, open_other: OpenOther, name: str, named: list[str]) -> None:
    with open_latest(ModulesReader, storage) as modules:
        hints = list(module_hints(modules, name, open_other))
    assert (len(hints), unnamed(" ".join(hints), *named)) == (bool(named), [])


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("reqeusts", ["requests"]),
        ("PyYAML", ["PyYAML", "_yaml", "yaml", "yaml.loader"]),
        ("something", []),
    ],
)
def test_hints_for_a_command(storage: Storage, open_other: OpenOther, name: str, named: list[str]) -> None:
    with open_latest(CommandsReader, storage) as commands:
        hints = list(command_hints(commands, name, open_other))[:1]
    assert (len(hints), unnamed(" ".join(hints), *named)) == (bool(named), [])


def test_hints_for_a_project(storage: Storage, open_other: OpenOther) -> None:
    with open_latest(DepgraphReader, storage) as depgraph:
        [hint] = project_hints(depgraph, "Reqeusts", open_other)
        assert unnamed(hint, "requests") == []
        [hint] = project_hints(depgraph, "yaml", open_other)
        assert unnamed(hint, "yaml", "PyYAML", "vendors-it-all") == []
        assert list(project_hints(depgraph, "yaml", lambda _: nullcontext(None))) == []
        assert list(project_hints(depgraph, "something", open_other)) == []


def test_best_provider_has_the_same_name_or_many_versions() -> None:
    found = [
        Provider("yaml", "a", "A", ["1"]),
        Provider("yaml", "b", "B", ["1", "2"]),
        Provider("yaml", "c", "C", ["1", "2", "3"]),
        Provider("yaml", "pyyaml", "PyYAML", ["1"]),
        Provider("yaml", "yaml", "YAML", ["1"]),
    ]
    assert best_providers("Yaml", found) == ["YAML", "PyYAML", "C"]


def test_hints_are_sentences() -> None:
    assert list(did_you_mean(Kind.PROJECT, [])) == []
    [hint] = did_you_mean(Kind.PROJECT, ["a1", "b1", "c1"])
    assert unnamed(hint, "a1", "b1", "c1") == []
    assert hint.meanings == tuple(Meaning(Kind.PROJECT, name) for name in ("a1", "b1", "c1"))
    assert listed(["a"], "and") == "a"
    assert top_level(["_a.b", "_a", "c.d", "c", "e", "f"]) == ["c", "e", "f"]


def test_hints_have_their_names_as_meanings(storage: Storage, open_other: OpenOther) -> None:
    with open_latest(ModulesReader, storage) as modules, open_latest(DepgraphReader, storage) as depgraph:
        found = [
            *module_hints(modules, "pyyaml", open_other),
            *module_hints(modules, "yaml.no.such", open_other),
            *project_hints(depgraph, "yaml", open_other),
            *project_hints(depgraph, "request", open_other),
        ]
    assert {meaning for hint in found for meaning in hint.meanings} >= {
        Meaning(Kind.PROJECT, "pyyaml"),
        Meaning(Kind.IMPORT, "yaml"),
        Meaning(Kind.PROJECT, "PyYAML"),
        Meaning(Kind.PROJECT, "requests"),
    }
    assert all(meaning.name in hint for hint in found for meaning in hint.meanings)


def test_hints_for_a_project_and_a_module(small: SmallCatalog) -> None:
    small.add(1, "PyYAML", "6.0", "PyYAML-6.0.tar.gz", modules=("yaml", "yaml.loader"))
    small.add(2, "requests", "2.0", "requests-2.0.tar.gz", modules=("requests",))
    small.add(3, "no-modules", "2.0", "no-modules-2.0.tar.gz", modules=None)
    with small.catalog.read() as connection:
        for name, expected in {
            "yaml": ["yaml", "PyYAML"],
            "PyYML": ["pyyaml"],
            "pyyaml": [],
            "Requests.": ["requests"],
            "something": [],
            "half \udc80\0": [],
        }.items():
            hints = list(unknown_project_hints(connection, name))
            assert (len(hints), unnamed(" ".join(hints), *expected)) == (bool(expected), []), name
    [hint] = past_project_hints(small.catalog, "requets")
    assert unnamed(hint, "requests") == []
    [hint] = past_module_hints(small.catalog, "yamll.loader")
    assert unnamed(hint, "yaml") == []
    assert list(past_module_hints(small.catalog, "yaml.loader2")) == []
    assert list(past_module_hints(small.catalog, "half \udc80")) == []
