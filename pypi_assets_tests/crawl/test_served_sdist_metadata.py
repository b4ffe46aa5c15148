"""Metadata that an index serves next to an sdist: pip resolves with it, and uv with the sdist's own metadata.

The record therefore has both, and each resolution uses the metadata that its installer sees.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.distributions.record import AMBIGUOUS, EXTRACTOR_VERSION
from pypi_assets.distributions.served_metadata import SERVED_METADATA, metadata_of_row
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.extracts.reprocess import reprocess
from pypi_assets.resolve.questions import Semantics
from pypi_assets.resolve.releases import past_index
from pypi_assets_tests.builders import make_sdist
from pypi_assets_tests.crawl.test_served_metadata import (
    SERVED,
    actions,
    content_of,
    read,
    resolved,
    serve,
    serve_each,
)
from pypi_assets_tests.installers import resolve_by_pip, resolve_by_uv
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.service.forked_pip import forked_pip

NAMED = "Metadata-Version: 2.2\nName: {}\nVersion: 1.0\n"
SETUP = "from setuptools import setup\nsetup(install_requires=open('needed').read().split())\n"
"""Only a build shows its requirements."""


def add(index: ServedIndex, name: str = "demo", version: str = "1.0", *, own: Mapping[str, str] | None = None) -> str:
    """Upload an sdist that requires `evil` and that setuptools builds. `own` holds fields of its own metadata."""
    fields = {"name": name, "version": version} | (own or {})
    is_known = fields.pop("requires", "known") == "known"
    lines = [f'{field} = "{value}"' for field, value in fields.items()]
    lines.append('dependencies = ["evil"]' if is_known else 'dynamic = ["dependencies"]')
    build = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    headers = [f"{field.title()}: {value}" for field, value in fields.items()]
    headers.append("Requires-Dist: evil" if is_known else "Dynamic: Requires-Dist")
    module = name.replace("-", "_")
    files = {
        "pyproject.toml": "\n".join([build, "[project]", *lines, "[tool.setuptools]", f'py-modules = ["{module}"]']),
        f"{module}.py": "",
        "PKG-INFO": "\n".join(["Metadata-Version: 2.2", *headers, ""]),
    } | ({} if is_known else {"setup.py": SETUP, "needed": "evil"})
    path = make_sdist(index.folder / "built", name, version, files=files, pkg_info=False)
    index.history.add(path, project=name, version=version)
    return path.name


def test_requirements_come_from_served_metadata_and_own_ones_are_kept(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index, own={"requires-python": ">=3.8"})
    requested = serve(index, SERVED)
    found = read(index, catalog, filename)
    assert requested == [f"{filename}.metadata"]
    assert (found["outcome"], found["requires_by"]) == ("data", SERVED_METADATA)
    assert (found["requires_dist"], found["requires_python"]) == (["benign>=2"], ">=3.9")
    assert found["installed_metadata"] == [
        *("Name: demo", "Version: 1.0", "Requires-Python: >=3.8", "Requires-Dist: evil")
    ]
    assert found["refusals"] == []  # pip builds the sdist, and compares nothing
    [note] = [note for note in found["notes"] if note.startswith(AMBIGUOUS)]
    assert all(field in note for field in ("Requires-Dist", "Requires-Python"))
    assert not any(field in note for field in ("Name", "Version"))
    reprocess(catalog, index.storage, index.crawler(catalog).readers, older_than=EXTRACTOR_VERSION + 1, processes=1)
    assert content_of(catalog, filename) == found
    [row] = iter_dump(index.storage, full_dump(catalog, index.storage, 1).directory)
    assert (row["requires_dist"], row["installed_metadata"]) == (["benign>=2"], found["installed_metadata"])
    assert metadata_of_row(row) is None  # our pages refer to the metadata that the index serves


def test_requirements_unknown_without_a_build_are_known_for_pip(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index, own={"requires": "unknown"})
    serve(index, f"{NAMED}Requires-Dist: evil\n")
    found = read(index, catalog, filename)
    assert (found["requires_dist"], found["requires_by"]) == (["evil"], SERVED_METADATA)
    assert found["installed_metadata"] == ["Name: demo", "Version: 1.0", "Dynamic: Requires-Dist"]
    assert not [note for note in found["notes"] if note.startswith(AMBIGUOUS)]


def test_equal_metadata_does_not_change_the_record(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index)
    serve(index, f"{NAMED}Requires-Dist: evil\n\nA description.")
    found = read(index, catalog, filename)
    assert (found["requires_dist"], found["requires_by"]) == (["evil"], "static PKG-INFO")
    assert (found["installed_metadata"], found["refusals"]) == (None, [])
    assert not [note for note in found["notes"] if note.startswith(AMBIGUOUS)]


def test_sdist_rejected_by_pip_has_its_own_metadata(
    index: ServedIndex, catalog: Catalog, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str | None, str | None, Sequence[str]]] = [
        (None, "something", ["pip fails"]),
        (SERVED, "something", ["pip fails"]),
        (SERVED.replace("{}", "other"), None, ["pip skips"]),
        (SERVED.replace("1.0", "1.1"), None, ["pip skips"]),
        (SERVED.replace("1.0", "one"), None, ["pip fails"]),
        ("Metadata-Version: 2.1\nVersion: 1.0\nRequires-Dist: benign\n", None, ["pip fails"]),
        ("nothing\n", None, ["pip fails"]),
    ]
    names = [f"demo{number}" for number in range(len(cases))]
    filenames = [add(index, name) for name in names]
    serve_each(index, {name: (content, stated) for name, (content, stated, _) in zip(names, cases, strict=True)})
    crawl_full(index.crawler(catalog))
    for filename, (content, stated, expected) in zip(filenames, cases, strict=True):
        with subtests.test(content=content, stated=stated):
            found = content_of(catalog, filename)
            assert actions(found) == expected
            assert (found["requires_dist"], found["requires_by"]) == (["evil"], "static PKG-INFO")
            assert found["installed_metadata"] is None


def test_pip_accepts_sdist_by_served_metadata_despite_its_own(index: ServedIndex, catalog: Catalog) -> None:
    """pip builds a wheel of another version and installs it. It fails on a wheel of another project."""
    version, name = add(index, own={"version": "1.1"}), add(index, "named", own={"name": "other"})
    serve(index, SERVED, names=["demo", "named"])
    crawl_full(index.crawler(catalog))
    assert actions(content_of(catalog, version)) == ["uv skips"]
    assert sorted(actions(content_of(catalog, name))) == ["pip fails to install", "uv skips"]
    assert content_of(catalog, version)["requires_dist"] == ["benign>=2"]


CASES: dict[str, tuple[Mapping[str, str], str | None, str | None]] = {
    "requires": ({}, f"{NAMED}Requires-Dist: benign>=2\n", None),
    "unknown": ({"requires": "unknown"}, f"{NAMED}Requires-Dist: benign>=2\n", None),
    "old": ({}, f"{NAMED.replace('2.2', '2.1')}Requires-Dist: benign>=2\n", None),
    "dynamic": ({}, f"{NAMED}Requires-Dist: benign>=2\nDynamic: Requires-Dist\n", None),
    "same": ({}, f"{NAMED}Requires-Dist: evil\n", None),
    "python": ({"requires-python": ">=99"}, NAMED, None),
    "missing": ({}, None, "something"),
    "hash": ({}, NAMED, "something"),
    "version": ({}, NAMED.replace("1.0", "1.1"), None),
    "name": ({}, NAMED.replace("{}", "benign"), None),
    "nothing": ({}, "nothing\n", None),
    "nameless": ({}, "Metadata-Version: 2.2\nVersion: 1.0\nRequires-Dist: benign\n", None),
    "broken": ({}, f"{NAMED}Requires-Dist: not a requirement\n", None),
    "own-version": ({"version": "1.1"}, f"{NAMED}Requires-Dist: benign>=2\n", None),
    "own-name": ({"name": "other"}, f"{NAMED}Requires-Dist: benign>=2\n", None),
}
"""By project: fields of its sdist 1.0, the metadata that are served next to it, and those whose hash is stated."""


@pytest.mark.nightly
def test_sdist_resolutions_equal_pip_and_uv(
    index: ServedIndex, catalog: Catalog, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """An older version exists for installers that skip the sdist. Both installers build sdists if needed."""
    for name in ("evil", "benign"):
        index.wheel(name, "2.0")
    for name, (own, *_) in CASES.items():
        index.wheel(name, "0.9")
        add(index, name, own=own)
    serve_each(index, {name: (content, stated) for name, (_, content, stated) in CASES.items()})
    crawl_full(index.crawler(catalog))
    past = past_index(catalog, index.serial)

    def theirs(pip: Any, name: str, semantics: Semantics) -> Mapping[str, str] | None:
        if semantics is Semantics.UV:
            return resolve_by_uv(index.url, [name], tmp_path, ["--no-cache", "--no-build-isolation"], builds=True).pins
        return resolve_by_pip(pip, index.url, [name], tmp_path, ["--no-build-isolation"]).pins

    unknown = {("unknown", Semantics.UV)}
    with forked_pip() as pip:
        assert resolved(past, "requires", Semantics.PIP) == {"requires": "1.0", "benign": "2.0"}
        assert resolved(past, "requires", Semantics.UV) == {"requires": "1.0", "evil": "2.0"}
        for name in CASES:
            for semantics in (Semantics.PIP, Semantics.UV):
                with subtests.test(name=name, semantics=semantics):
                    expected = None if (name, semantics) in unknown else theirs(pip, name, semantics)
                    assert resolved(past, name, semantics) == expected
