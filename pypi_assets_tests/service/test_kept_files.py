"""Bytes of kept files over HTTP: whole, in ranges, checked before they are sent, and refused in a quarantine."""

import hashlib
import random
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from pypi_assets.catalog.reads.kept_files import KeptObject
from pypi_assets.catalog.reads.kept_lists import find_kept
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.scope_crawl import run_scope, start_scope
from pypi_assets.keeping.keeper import FileKeeper
from pypi_assets.keeping.objects import BLOCK_BYTES, path_of, read_verified
from pypi_assets.keeping.verification import verify_files
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.service import kept_files
from pypi_assets_tests.service.published import Published, client_of

LARGE = {"large/__init__.py": "", "large/data": random.Random(2).randbytes(6 * BLOCK_BYTES + 12_345)}


@pytest.fixture
def keeping(changing: Published) -> Published:
    """Return an index with a scope of the projects `demo` and `large`, whose files are kept."""
    changing.add("wheel", "large", "1.0", files=LARGE)
    changing.publish()
    plan = ScopePlan("mine", {"demo": frozenset(), "large": frozenset()}, keep_files=True)
    crawler = changing.index.crawler(changing.catalog, storage=changing.storage)
    start_scope(crawler, plan)
    run_scope(crawler, "mine")
    return changing


def built(keeping: Published, filename: str) -> bytes:
    return (keeping.index.folder / "built" / filename).read_bytes()


def address(keeping: Published, filename: str) -> tuple[str, str]:
    """Return the address of a file that never expires, and its SHA-256."""
    sha256 = hashlib.sha256(built(keeping, filename)).hexdigest()
    return f"/at/files/{sha256}/{filename}", sha256


def damage(keeping: Published, filename: str, at: int) -> KeptObject:
    """Change a byte of a kept object."""
    with keeping.catalog.read() as connection:
        found = find_kept(connection, address(keeping, filename)[1])
    assert found is not None
    path = keeping.storage.local_path(path_of(found.object))
    assert path is not None
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    return found.object


def test_kept_file_is_served_whole_and_in_ranges(keeping: Published) -> None:
    filename = "large-1.0-py3-none-any.whl"
    content = built(keeping, filename)
    path, sha256 = address(keeping, filename)
    with keeping.service() as service, client_of(service) as client:
        for url in (path, f"/files/{sha256}/{filename}", f"/files/sha256/{sha256}"):
            whole = client.get(url, headers={"Accept-Encoding": "gzip"})
            assert (whole.status_code, whole.content) == (200, content)
            assert whole.headers["content-length"] == str(len(content))
            assert "content-encoding" not in whole.headers
            assert (whole.headers["etag"], whole.headers["cache-control"]) == (f'"{sha256}"', "no-store")
        size = len(content)
        for wanted, start, end in (
            ("bytes=0-0", 0, 1),
            ("bytes=100-", 100, size),
            ("bytes=-22", size - 22, size),
            (f"bytes=-{size * 2}", 0, size),
            (f"bytes={BLOCK_BYTES - 5}-{5 * BLOCK_BYTES + 4}", BLOCK_BYTES - 5, 5 * BLOCK_BYTES + 5),
            (f"bytes=5-{size + 50}", 5, size),
        ):
            part = client.get(path, headers={"Range": wanted})
            assert (part.status_code, part.content) == (206, content[start:end]), wanted
            assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
        for wanted in ("bytes=0-1,5-6", "bytes=5-2", "lines=1-2", "bytes=-"):
            assert client.get(path, headers={"Range": wanted}).content == content
        for wanted in (f"bytes={size}-", "bytes=-0"):
            beyond = client.get(path, headers={"Range": wanted})
            assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{size}")
        other = client.get(path, headers={"Range": "bytes=0-0", "If-Range": '"other"'})
        assert (other.status_code, other.content) == (200, content)
        for tags in (f'"{sha256}"', f'"other", W/"{sha256}"', "*"):
            for headers in ({}, {"Range": "bytes=0-9"}):  # the condition comes before the range
                known = client.get(path, headers={"If-None-Match": tags, **headers})
                assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", f'"{sha256}"'), tags
        assert client.get(path, headers={"If-None-Match": f'"{sha256[:-1]}", "{sha256}0"'}).content == content
        head = client.request("HEAD", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(size)


@pytest.mark.nightly
def test_file_that_is_not_kept_is_a_redirect(keeping: Published) -> None:
    with keeping.service() as service, client_of(service) as client:
        page = client.get("/simple/other-app/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}).json()
        assert client.get(f"/files/sha256/{page['files'][0]['hashes']['sha256']}").status_code == 307


def test_corrupt_file_is_never_served_as_whole(keeping: Published, caplog: pytest.LogCaptureFixture) -> None:
    filename = "large-1.0-py3-none-any.whl"
    path, _ = address(keeping, filename)
    damaged = damage(keeping, filename, 5 * BLOCK_BYTES)
    with keeping.service() as service, client_of(service) as client:
        first = client.get(path, headers={"Range": "bytes=0-9"})
        assert (first.status_code, first.content) == (206, built(keeping, filename)[:10])
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            client.get(path)
        assert service.kept.corrupt == {damaged}
        assert client.get(path).status_code == 307
    assert [record.levelname for record in caplog.records if record.name.endswith("kept_files")] == ["ERROR"]


@pytest.mark.nightly
def test_file_that_is_corrupt_at_its_start_is_a_redirect(keeping: Published) -> None:
    filename = "large-1.0-py3-none-any.whl"
    path, _ = address(keeping, filename)
    one = damage(keeping, filename, 7)
    with keeping.service() as service, client_of(service) as client:
        assert client.get(path).status_code == 307
    keeping.storage.delete(path_of(one))
    with keeping.service() as service, client_of(service) as client:
        assert client.get(path).status_code == 307


def test_file_that_was_corrupt_is_served_after_it_was_fetched_again(keeping: Published) -> None:
    filename = "large-1.0-py3-none-any.whl"
    path, _ = address(keeping, filename)
    damaged = damage(keeping, filename, 7)
    with keeping.service() as service, client_of(service) as client:
        assert client.get(path).status_code == 307
        assert [one.object for one in verify_files(keeping.catalog, keeping.storage) if one.fault] == [damaged]
        run_scope(keeping.index.crawler(keeping.catalog, storage=keeping.storage), "mine")
        again = client.get(path)
        assert (again.status_code, again.content) == (200, built(keeping, filename))


def test_file_that_is_evicted_while_it_is_read_is_not_corrupt(
    keeping: Published, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sha256 = address(keeping, "large-1.0-py3-none-any.whl")

    def read_after_eviction(*arguments: Any) -> Iterator[bytes]:
        FileKeeper(keeping.catalog, keeping.storage).forget(sha256, "drawn")
        return read_verified(*arguments)

    monkeypatch.setattr(kept_files, "read_verified", read_after_eviction)
    with keeping.service() as service, client_of(service) as client:
        assert client.get(path).status_code == 307
        assert service.kept.corrupt == set()
    assert [record for record in caplog.records if record.name.endswith("kept_files")] == []


def test_quarantined_file_is_refused_although_it_is_kept(keeping: Published) -> None:
    path, sha256 = address(keeping, "large-1.0-py3-none-any.whl")
    keeping.index.history.quarantine("large", at=keeping.at())
    crawl_incremental(keeping.index.crawler(keeping.catalog))
    with keeping.service() as service, client_of(service) as client:
        assert client.get(path).status_code == 451
        assert client.get(f"/files/sha256/{sha256}").status_code == 451
    with keeping.service(service_allow_quarantined=True) as service, client_of(service) as client:
        assert client.get(path).content == built(keeping, "large-1.0-py3-none-any.whl")


@pytest.mark.nightly
def test_forgotten_file_is_a_redirect(keeping: Published) -> None:
    path, sha256 = address(keeping, "large-1.0-py3-none-any.whl")
    FileKeeper(keeping.catalog, keeping.storage).forget(sha256, "has a secret")
    with keeping.service() as service, client_of(service) as client:
        assert client.get(path).status_code == 307
