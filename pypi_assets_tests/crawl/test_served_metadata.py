"""Metadata that an index serves next to a wheel and that differs from its METADATA: the record has both, however the
wheel is fetched.
"""

import hashlib
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import distributions
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.distributions.record import AMBIGUOUS, EXTRACTOR_VERSION
from pypi_assets.distributions.served_metadata import SERVED_METADATA, metadata_of_row
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.extracts.reprocess import reprocess
from pypi_assets.resolve.questions import ResolutionQuestion, Semantics, parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets.resolve.solver_data import UnknownRequirementsError
from pypi_assets_tests.dump_rows import content_rows
from pypi_assets_tests.file_faults import is_sidecar
from pypi_assets_tests.installers import resolve_by_pip, resolve_by_uv
from pypi_assets_tests.resolve.made_index import LINUX
from pypi_assets_tests.served_index import JSON, ServedIndex
from pypi_assets_tests.service.forked_pip import forked_pip

PADDING = {f"demo/data{number}.bin": random.Random(number).randbytes(100_000) for number in range(4)}
OWN = ["Version: 1.0", "Requires-Python: >=3.8", "Requires-Dist: evil", "Requires-Dist: other>=1"]
SERVED = "Metadata-Version: 2.1\nName: {}\nVersion: 1.0\nRequires-Dist: benign>=2\nRequires-Python: >=3.9\n"


def add(index: ServedIndex, name: str = "demo", files: dict[str, Any] | None = None) -> str:
    files = files or {f"{name}/__init__.py": ""}
    return index.wheel(name, "1.0", files=files, requires_dist=["evil", "other>=1"], requires_python=">=3.8")


def serve(
    index: ServedIndex,
    content: str | None,
    stated: str | None = None,
    names: Iterable[str] = ("demo",),
    unsized: Iterable[str] = (),
) -> list[str]:
    """Serve `content` next to the 1.0 files of these projects, with the hash of `stated` or `content` on their pages.

    If `content` is None, the metadata is missing. Return a list that collects the paths of all metadata requests.
    """
    pages: dict[str, bytes] = {}
    for name in names:
        page = json.loads(index.page(name))
        for file in (one for one in page["files"] if "-1.0" in one["filename"]):
            digest = hashlib.sha256((stated or content or "").format(name.replace("-", "_")).encode()).hexdigest()
            file["core-metadata"] = file["data-dist-info-metadata"] = {"sha256": digest}
            file["requires-python"] = None
            if name in unsized:
                del file["size"]
        pages[f"/simple/{name}/"] = json.dumps(page).encode()
    requested: list[str] = []
    starts = tuple(f"{name.replace('-', '_')}-1.0" for name in names)

    def answer(request: Request) -> Response | None:
        filename = request.url.path.rpartition("/")[2]
        if request.url.path in pages:
            return Response(pages[request.url.path], media_type=JSON)
        if not is_sidecar(request) or not filename.startswith(starts):
            return None
        requested.append(filename)
        return Response(b"", 404) if content is None else Response(content.format(filename.partition("-")[0]).encode())

    index.faults = answer
    return requested


def serve_each(index: ServedIndex, cases: Mapping[str, tuple[str | None, str | None]]) -> None:
    """Serve the content of each project next to its 1.0 files. If a second text is given, the page states its hash
    instead.
    """
    answers = []
    for name, (content, stated) in cases.items():
        serve(index, content, stated, names=[name])
        answers.append(index.faults)
    index.faults = lambda request: next((found for answer in answers if answer and (found := answer(request))), None)


def resolved(past: ReleaseIndex, name: str, semantics: Semantics) -> Mapping[str, str] | None:
    """Return the versions that are chosen for a project, or None if there is no answer."""
    try:
        return resolve(past, ResolutionQuestion((parse_wanted(name),), LINUX, semantics=semantics)).pins
    except (UnsolvableError, UnknownRequirementsError):
        return None


def content_of(catalog: Catalog, filename: str) -> dict[str, Any]:
    """Return the file's content as dumps have it."""
    with catalog.read() as connection:
        id_ = connection.scalar(select(distributions.c.id).where(distributions.c.filename == filename))
        assert id_ is not None
        found: dict[str, Any] = orjson.loads(orjson.dumps(content_rows(connection, [id_], None)[id_]))
    return found


def read(index: ServedIndex, catalog: Catalog, filename: str) -> dict[str, Any]:
    """Run a full crawl, and return the file's content."""
    crawl_full(index.crawler(catalog))
    return content_of(catalog, filename)


def actions(found: dict[str, Any]) -> list[str]:
    return [refusal.partition(":")[0] for refusal in found["refusals"]]


def test_requirements_come_from_served_metadata_however_a_wheel_is_fetched(
    index: ServedIndex, catalog: Catalog, subtests: pytest.Subtests
) -> None:
    """Small wheels are fetched whole, large ones by ranges with METADATA at the end or start, and unsized ones as a
    stream.
    """
    names = [f"{size}{end}" for size in ("small", "large", "early") for end in ("", "_unsized")]
    wheels = {}
    for name in names:
        files: dict[str, Any] = {f"{name}/__init__.py": ""} | ({} if name.startswith("small") else PADDING)
        wheels[name] = add(index, name, ({f"{name}-1.0.dist-info/METADATA": ""} if "early" in name else {}) | files)
    pages = [name.replace("_", "-") for name in names]
    serve(index, SERVED, names=pages, unsized=pages[1::2])
    crawl_full(index.crawler(catalog))
    records = {name: content_of(catalog, filename) for name, filename in wheels.items()}
    for name, found in records.items():
        with subtests.test(name=name):
            assert (found["outcome"], found["requires_by"]) == ("data", SERVED_METADATA)
            assert (found["requires_dist"], found["requires_python"]) == (["benign>=2"], ">=3.9")
            assert found["installed_metadata"] == [f"Name: {name}", *OWN]
            assert actions(found) == ["pip fails to install"]
            assert all(field in found["refusals"][0] for field in ("Requires-Dist", "Requires-Python"))
            assert "Version" not in found["refusals"][0]
            [note] = [note for note in found["notes"] if note.startswith(AMBIGUOUS)]
            assert "Requires-Dist" in note
    reprocess(catalog, index.storage, index.crawler(catalog).readers, older_than=EXTRACTOR_VERSION + 1, processes=1)
    assert {name: content_of(catalog, filename) for name, filename in wheels.items()} == records


def test_served_metadata_is_requested_only_if_its_hash_differs(index: ServedIndex, catalog: Catalog) -> None:
    honest = index.wheel("honest", "1.0")
    filename = add(index)
    requested = serve(index, SERVED)
    crawl_full(index.crawler(catalog))
    assert requested == [f"{filename}.metadata"]
    found = content_of(catalog, honest)
    assert (found["installed_metadata"], found["refusals"], found["requires_by"]) == (None, [], "METADATA")


def test_difference_without_effect_on_resolution_is_a_note(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index)
    serve(index, "\n".join(["Metadata-Version: 2.1", "Name: {}", *OWN, "", "Another description."]))
    found = read(index, catalog, filename)
    assert (found["installed_metadata"], found["refusals"], found["requires_by"]) == (None, [], "METADATA")
    assert [note for note in found["notes"] if note.startswith(AMBIGUOUS)]


def test_installers_fail_on_missing_or_mismatched_metadata(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index)
    serve(index, None, stated="something")
    found = read(index, catalog, filename)
    assert actions(found) == ["pip fails", "uv fails"]
    assert (found["requires_dist"], found["installed_metadata"]) == (["evil", "other>=1"], None)


def test_installers_fail_on_bytes_with_another_hash(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index)
    requested = serve(index, SERVED, stated="something")
    found = read(index, catalog, filename)
    assert actions(found) == ["pip fails", "uv fails"]
    assert found["requires_dist"] == ["benign>=2"]
    assert found["installed_metadata"] == ["Name: demo", *OWN]
    assert len(requested) == 3  # a mismatch counts only if it repeats


def test_served_name_and_version_decide_which_installers_accept_the_wheel(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index)
    serve(index, "Metadata-Version: 2.1\nName: demo\nVersion: 1.1\n")
    found = read(index, catalog, filename)
    assert actions(found) == ["pip skips"]
    assert found["requires_dist"] == []


def test_dump_has_the_lines_of_the_wheel(index: ServedIndex, catalog: Catalog) -> None:
    filename = add(index)
    serve(index, SERVED)
    crawl_full(index.crawler(catalog))
    [row] = iter_dump(index.storage, full_dump(catalog, index.storage, 1).directory)
    assert (row["filename"], row["requires_dist"], row["requires_python"]) == (filename, ["benign>=2"], ">=3.9")
    assert row["installed_metadata"] == ["Name: demo", *OWN]
    assert metadata_of_row(row) is None  # our pages refer to the metadata that the index serves


@pytest.mark.nightly
def test_wheel_resolutions_equal_pip_and_uv(
    index: ServedIndex, catalog: Catalog, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """An older version exists for installers that skip the wheel."""
    named = "Metadata-Version: 2.1\nName: {}\nVersion: 1.0\n"
    cases: dict[str, tuple[str | None, str | None]] = {
        "requires": (f"{named}Requires-Dist: benign>=2\n", None),
        "python": (f"{named}Requires-Python: >=99\n", None),
        "same": (f"{named}Requires-Dist: other>=1\nRequires-Dist: evil\n", None),
        "missing": (None, "something"),
        "hash": (named, "something"),
        "version": ("Metadata-Version: 2.1\nName: {}\nVersion: 1.1\n", None),
        "name": ("Metadata-Version: 2.1\nName: benign\nVersion: 1.0\n", None),
        "nothing": ("nothing\n", None),
    }
    for name in ("evil", "other", "benign"):
        index.wheel(name, "2.0")
    for name in cases:
        index.wheel(name, "0.9")
        add(index, name)
    serve_each(index, cases)
    crawl_full(index.crawler(catalog))
    past = past_index(catalog, index.serial)
    with forked_pip() as pip:
        assert resolved(past, "requires", Semantics.PIP) == {"requires": "1.0", "benign": "2.0"}
        for name in cases:
            with subtests.test(name=name):
                by_pip = resolve_by_pip(pip, index.url, [name], tmp_path, [])
                by_uv = resolve_by_uv(index.url, [name], tmp_path, ["--no-cache"])
                assert resolved(past, name, Semantics.PIP) == by_pip.pins
                assert resolved(past, name, Semantics.UV) == by_uv.pins
