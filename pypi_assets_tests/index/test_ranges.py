"""Partial reads of files from a real local index, including servers that break the rules."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.distributions.reader import read_distribution
from pypi_assets.index import ranged_files
from pypi_assets.index.errors import ContentError, NotOnIndexError, RefusedError, TooLargeError, TransientError
from pypi_assets.index.models import IndexFile, ProjectPage
from pypi_assets.index.ranged_files import RangedFile
from pypi_assets.index.transport import Retries
from pypi_assets_tests.file_faults import (
    Faults,
    answers_files,
    answers_ranges,
    answers_sidecars,
    at_first,
    ignores_ranges,
    is_file,
    redirects_files,
)
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, served_index


class Wheel:
    """A wheel on a served index, and the requests that the file host received since its upload."""

    def __init__(self, index: ServedIndex) -> None:
        self.index = index
        filename = index.wheel("demo", "1.0", files={"demo/__init__.py": "", "demo/data.bin": "text " * 400})
        self.content = (index.folder / "built" / filename).read_bytes()
        with index.client() as client:
            page = client.project_page("demo")
        assert isinstance(page, ProjectPage)
        self.file: IndexFile = page.files[0]
        self.received: list[tuple[str, str, str | None]] = []
        self.misbehaves()

    def misbehaves(self, *faults: Faults) -> None:
        def answer(request: Request) -> Response | None:
            suffix = Path(request.url.path).suffix
            self.received.append((request.method, suffix, request.headers.get("range")))
            assert suffix != ".whl" or request.headers["accept-encoding"] == "identity"
            return next((one for fault in faults if (one := fault(request)) is not None), None)

        self.index.faults = answer

    @contextmanager
    def open(self, *, client: dict[str, object] | None = None, **promised: Any) -> Iterator[RangedFile]:
        file = self.file
        settings: dict[str, Any] = {
            "sha256": file.sha256,
            "size": file.size,
            "max_bytes": 10**6,
            "metadata_sha256": file.core_metadata_sha256,
            "has_sidecar": file.core_metadata,
        }
        with (
            self.index.client(**({"retries": Retries(3, 0.0)} | (client or {}))) as index_client,
            index_client.open_ranges(file.url, **(settings | promised)) as ranged,
        ):
            yield ranged


@pytest.fixture(scope="module")
def _wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wheel]:
    with served_index(tmp_path_factory.mktemp("served")) as index:
        yield Wheel(index)


@pytest.fixture
def wheel(_wheel: Wheel) -> Wheel:
    _wheel.misbehaves()
    _wheel.received.clear()
    return _wheel


def test_parts_are_requested_only_by_absolute_ranges(wheel: Wheel) -> None:
    size = len(wheel.content)
    with wheel.open() as file:
        assert file.size == size
        assert wheel.received == []
        assert file.read_at(10, 20) == wheel.content[10:30]
        assert file.read_at(size - 5, 5) == wheel.content[-5:]
        assert file.read_at(0, size - 1) == wheel.content[:-1]
        assert wheel.received == [
            ("GET", ".whl", "bytes=10-29"),
            ("GET", ".whl", f"bytes={size - 5}-{size - 1}"),
            ("GET", ".whl", f"bytes=0-{size - 2}"),
        ]
        fetched = file.fetched
        assert (fetched.bytes, fetched.requests) == (20 + 5 + size - 1, 3)
        assert fetched.seconds > 0


def test_read_beyond_the_end_makes_no_request(wheel: Wheel) -> None:
    size = len(wheel.content)
    with wheel.open() as file:
        assert file.read_at(size, 10) == file.read_at(size + 10, 1) == file.read_at(3, 0) == b""
        assert wheel.received == []
        assert file.read_at(size - 3, 100) == wheel.content[-3:]
        assert wheel.received == [("GET", ".whl", f"bytes={size - 3}-{size - 1}")]
        with pytest.raises(ValueError, match=naming(-1)):
            file.read_at(-1, 10)


def test_read_of_everything_fetches_checks_and_keeps_the_file(wheel: Wheel) -> None:
    size = len(wheel.content)
    with wheel.open() as file:
        assert file.read_at(0, size + 99) == wheel.content
        assert file.read_at(7, 9) == wheel.content[7:16]
        assert file.whole().read() == file.whole().read() == wheel.content
        assert wheel.received == [("GET", ".whl", None)]
        assert (file.fetched.bytes, file.fetched.requests) == (size, 1)
        whole = file.whole()
    assert whole.closed


def test_server_that_ignores_ranges_gets_one_request(wheel: Wheel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranged_files, "SPOOLED_BYTES", 100)  # the rest is spooled to disk
    wheel.misbehaves(ignores_ranges)
    with wheel.open() as file:
        assert file.read_at(10, 20) == wheel.content[10:30]
        assert file.read_at(500, 20) == wheel.content[500:520]
        assert file.whole().read() == wheel.content
        assert (file.fetched.bytes, file.fetched.requests) == (len(wheel.content), 1)
    assert len(wheel.received) == 1
    with wheel.open(sha256="ab" * 32) as file, pytest.raises(ContentError, match="sha256"):
        file.read_at(10, 20)
    wheel.received.clear()
    with wheel.open(max_bytes=100) as file, pytest.raises(TooLargeError, match=naming(100)):
        file.read_at(10, 20)
    assert len(wheel.received) == 1


WRONG_RANGES = {
    "416": {"status": 416},
    "416, of another size": {"status": 416, "total": 12},
    "another size": {"total": 10**6},
    "more than was requested": {"more": b"!"},
}


@pytest.mark.parametrize("wrong", WRONG_RANGES.values(), ids=WRONG_RANGES)
def test_wrong_ranges_fall_back_to_the_whole_file(wheel: Wheel, wrong: dict[str, Any]) -> None:
    wheel.misbehaves(answers_ranges(wheel.content, **wrong))
    with wheel.open() as file:
        assert file.read_at(10, 20) == wheel.content[10:30]
        assert file.read_at(50, 20) == wheel.content[50:70]
        assert [request[2] for request in wheel.received] == ["bytes=10-29", None]
        assert (file.fetched.bytes, file.fetched.requests) == (len(wheel.content), 2)


def test_range_without_position_is_rejected(wheel: Wheel) -> None:
    wheel.misbehaves(lambda request: Response(b"x" * 20, 206) if "range" in request.headers else None)
    with wheel.open() as file:
        assert file.read_at(10, 20) == wheel.content[10:30]


@pytest.mark.parametrize("wrong_by", [-100, 100])
@pytest.mark.parametrize("offset", [10, -20], ids=["start", "end"])
def test_wrong_size_on_the_page_is_detected(wheel: Wheel, wrong_by: int, offset: int) -> None:
    size = len(wheel.content) + wrong_by
    with wheel.open(size=size) as file, pytest.raises(ContentError, match=naming(size)):
        file.read_at(offset % size, 20)


def test_truncated_range_is_retried(wheel: Wheel) -> None:
    short = answers_ranges(wheel.content, cut=3)
    wheel.misbehaves(at_first(short, 2))
    with wheel.open() as file:
        assert file.read_at(10, 20) == wheel.content[10:30]
        assert (file.fetched.bytes, file.fetched.requests) == (20, 3)
    wheel.misbehaves(short)
    with wheel.open() as file:
        with pytest.raises(TransientError, match=naming(17, 20)):
            file.read_at(10, 20)
        assert (file.fetched.bytes, file.fetched.requests) == (0, 3)


@pytest.mark.parametrize(
    ("status", "error", "requests"), [(503, TransientError, 3), (404, NotOnIndexError, 1), (403, RefusedError, 1)]
)
def test_range_failures_are_typed_as_for_other_requests(
    wheel: Wheel, status: int, error: type[Exception], requests: int
) -> None:
    wheel.misbehaves(answers_files(status))
    with wheel.open() as file:
        with pytest.raises(error, match=naming(status)):
            file.read_at(10, 20)
        assert file.fetched.requests == requests
    wheel.misbehaves(at_first(answers_files(503), 2))
    with wheel.open() as file:
        assert file.read_at(10, 20) == wheel.content[10:30]
        assert file.fetched.requests == 3


def test_file_too_large_to_fetch_can_be_read_in_parts(wheel: Wheel) -> None:
    size = len(wheel.content)
    with wheel.open(max_bytes=size - 1) as file:
        assert file.read_at(10, 20) == wheel.content[10:30]
        assert file.read_at(0, size) == wheel.content
        with pytest.raises(TooLargeError, match=naming(size, size - 1)):
            file.whole()
        assert [request[2] for request in wheel.received] == ["bytes=10-29", f"bytes=0-{size - 1}"]


def test_whole_file_with_unexpected_bytes_is_rejected(wheel: Wheel) -> None:
    wheel.misbehaves(lambda request: Response(wheel.content[:-1] + b"!") if is_file(request) else None)
    with wheel.open() as file:
        for read in (file.whole, lambda: file.read_at(10, 20), lambda: file.read_at(0, file.size)):
            with pytest.raises(ContentError, match="sha256"):
                read()
        assert file.fetched.bytes == 0


# Redirects and credentials


def test_redirects_are_followed_for_ranges_too(wheel: Wheel) -> None:
    wheel.misbehaves(redirects_files(lambda request: request.url.path))
    with wheel.open() as file:
        assert file.read_at(10, 20) == wheel.content[10:30]
        assert [request[2] for request in wheel.received] == ["bytes=10-29"] * 2
        assert (file.fetched.bytes, file.fetched.requests) == (20, 2)


def test_each_redirect_of_a_range_is_checked(wheel: Wheel) -> None:
    wheel.misbehaves(redirects_files(lambda request: str(request.url.replace(hostname="localhost"))))
    with wheel.open() as file, pytest.raises(RefusedError, match="localhost"):
        file.read_at(10, 20)
    assert len(wheel.received) == 1
    with wheel.open(client={"allowed_file_hosts": ["localhost"]}) as file:
        assert file.read_at(10, 20) == wheel.content[10:30]


def test_range_credentials_are_sent_only_to_the_index_host(wheel: Wheel) -> None:
    seen: list[tuple[str | None, str | None]] = []
    wheel.misbehaves(
        lambda request: seen.append((request.url.hostname, request.headers.get("authorization"))),
        redirects_files(lambda request: str(request.url.replace(hostname="localhost"))),
    )
    secret = wheel.index.url.replace("http://", "http://me:hush@").replace("/simple/", "/pypi")
    with wheel.open(client={"changelog_url": secret, "allowed_file_hosts": ["localhost"]}) as file:
        assert file.read_at(10, 20) == wheel.content[10:30]
    assert seen == [("127.0.0.1", "Basic bWU6aHVzaA=="), ("localhost", None)]


# Sidecars


def test_sidecar_is_requested_once(wheel: Wheel) -> None:
    with wheel.open() as file:
        sidecar = file.sidecar()
        assert sidecar is not None
        assert hashlib.sha256(sidecar).hexdigest() == wheel.file.core_metadata_sha256 == file.metadata_sha256
        assert file.sidecar() == sidecar
        assert (file.fetched.bytes, file.fetched.requests) == (len(sidecar), 1)
    assert wheel.received == [("GET", ".metadata", None)]
    with wheel.open(metadata_sha256=None) as file:
        assert file.sidecar() == sidecar


def test_sidecar_missing_from_the_page_is_not_requested(wheel: Wheel) -> None:
    with wheel.open(has_sidecar=False) as file:
        assert file.sidecar() is None
    assert wheel.received == []


@pytest.mark.parametrize("fault", [answers_sidecars(404), answers_sidecars(403), answers_sidecars(200, b"Name: other")])
def test_untrusted_sidecar_is_ignored(wheel: Wheel, fault: Faults) -> None:
    wheel.misbehaves(fault)
    with wheel.open() as file:
        assert file.sidecar() is None
        assert file.sidecar() is None
        assert file.fetched.requests == 1
    assert len(wheel.received) == 1


def test_unbounded_sidecar_is_not_read(wheel: Wheel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranged_files, "MAX_SIDECAR_BYTES", 10)
    with wheel.open() as file:
        assert file.sidecar() is None


def test_transient_sidecar_failure_can_be_retried(wheel: Wheel) -> None:
    wheel.misbehaves(at_first(answers_sidecars(503), 3))
    with wheel.open() as file:
        with pytest.raises(TransientError):
            file.sidecar()
        assert file.sidecar() is not None
        assert file.fetched.requests == 4


def test_sidecar_url_ignores_the_fragment(wheel: Wheel) -> None:
    with (
        wheel.index.client() as client,
        client.open_ranges(
            f"{wheel.file.url}#sha256={wheel.file.sha256}",
            sha256=None,
            size=len(wheel.content),
            max_bytes=10**6,
            metadata_sha256=None,
            has_sidecar=True,
        ) as file,
    ):
        assert (file.sidecar() or b"").startswith(b"Metadata-Version:")


# Together with the reader


@pytest.mark.parametrize("fault", [lambda _: None, ignores_ranges, answers_sidecars(404)])
def test_distribution_reads_the_same_in_parts_and_whole(wheel: Wheel, fault: Faults) -> None:
    local = read_distribution(io.BytesIO(wheel.content), wheel.file.filename)
    wheel.misbehaves(fault)
    with wheel.open() as file:
        remote = read_distribution(file, wheel.file.filename)
    assert remote.record == replace(local.record, sha256=None, size=None)
    assert remote.record.error is None
    assert remote.extract == local.extract
    assert len(wheel.received) == 1


def test_network_failure_is_not_recorded_for_the_distribution(wheel: Wheel) -> None:
    wheel.misbehaves(answers_files(503))
    with wheel.open() as file, pytest.raises(TransientError, match=naming(503)):
        read_distribution(file, wheel.file.filename)
