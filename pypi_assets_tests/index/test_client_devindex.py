"""The client against a complete index over HTTP, with real files: uploads, removals, quarantine and yanks."""

import hashlib
import io
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import Faults, running
from pypi_assets.index.actions import Action, file_change
from pypi_assets.index.client import IndexClient
from pypi_assets.index.errors import NotOnIndexError
from pypi_assets.index.models import NotModified, ProjectPage
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Retries
from pypi_assets_tests.builders import make_sdist, make_wheel


@contextmanager
def client_of(folder: Path, *, faults: Faults | None = None, page_rows: int = 50_000) -> Iterator[IndexClient]:
    with (
        running(folder, faults=faults, page_rows=page_rows) as url,
        IndexClient(
            url,
            changelog_url=url.removesuffix("simple/") + "pypi",
            rates=Rates(RateLimit(math.inf), RateLimit(math.inf)),
            retries=Retries(pause_s=0.001),
        ) as client,
    ):
        yield client


def page_of(client: IndexClient, project: str) -> ProjectPage:
    page = client.project_page(project)
    assert isinstance(page, ProjectPage)
    return page


def test_client_follows_an_index_from_empty_to_removed(tmp_path: Path) -> None:
    history = History(tmp_path / "index")
    with client_of(tmp_path / "index", page_rows=2) as client:
        assert client.last_serial() == 0
        assert list(client.changelog(0, 100)) == []
        assert client.listing().projects == ()

        wheel = make_wheel(tmp_path, "Demo.Pkg", "1.0", requires_dist=["requests"])
        sdist = make_sdist(tmp_path, "Demo.Pkg", "1.0")
        history.add(wheel)
        serial = history.add(sdist)
        assert client.last_serial() == serial
        with client.iter_listing() as (listed_serial, projects):
            assert (listed_serial, [(p.normalized, p.last_serial) for p in projects]) == (
                serial,
                [("demo-pkg", serial)],
            )

        page = page_of(client, "Demo.Pkg")
        assert (page.last_serial, page.status) == (serial, "active")
        assert client.project_page("Demo.Pkg", etag=page.etag) == NotModified(serial)
        for file, path in zip(page.files, sorted([wheel, sdist], key=lambda p: p.suffix != ".whl"), strict=True):
            sink = io.BytesIO()
            client.fetch_file(file.url, sink, sha256=file.sha256, size=file.size, max_bytes=10**6)
            assert sink.getvalue() == path.read_bytes()
        sidecar = io.BytesIO()
        client.fetch_file(
            page.files[0].url + ".metadata",
            sidecar,
            sha256=page.files[0].core_metadata_sha256,
            size=None,
            max_bytes=10**6,
        )
        assert b"Requires-Dist: requests" in sidecar.getvalue()

        history.yank("Demo.Pkg", "1.0", "broken")
        assert {(file.yanked, file.yanked_reason) for file in page_of(client, "demo-pkg").files} == {(True, "broken")}
        history.quarantine("Demo.Pkg")
        assert (page_of(client, "demo-pkg").status, page_of(client, "demo-pkg").files) == ("quarantined", ())
        history.unquarantine("Demo.Pkg")
        history.remove_project("Demo.Pkg")
        with pytest.raises(NotOnIndexError):
            client.project_page("demo-pkg")

        events = [event for events in client.changelog(0, client.last_serial()) for event in events]
        assert [event.serial for event in events] == sorted({event.serial for event in events})
        assert events[-1].serial == client.last_serial()
        changes = [file_change(event) for event in events]
        assert [change.filename for change in changes if change.action is Action.ADD_FILE] == [wheel.name, sdist.name]
        assert [change.action for change in changes][-4:] == [
            Action.YANK_RELEASE,
            Action.QUARANTINE_PROJECT,
            Action.UNQUARANTINE_PROJECT,
            Action.REMOVE_PROJECT,
        ]


def test_threads_read_a_failing_index(tmp_path: Path) -> None:
    history = History(tmp_path / "index")
    wheels = [make_wheel(tmp_path, f"demo-{n}", "1.0") for n in range(8)]
    for wheel in wheels:
        history.add(wheel)
    lock = threading.Lock()
    requested: dict[str, int] = {}

    def every_first_time(request: Request) -> Response | None:
        with lock:
            requested[request.url.path] = requested.get(request.url.path, 0) + 1
            return Response(status_code=503) if requested[request.url.path] == 1 else None

    def read(number: int) -> tuple[str, int]:
        (file,) = page_of(client, f"demo-{number}").files
        sink = io.BytesIO()
        fetched = client.fetch_file(file.url, sink, sha256=file.sha256, size=file.size, max_bytes=10**6)
        return hashlib.sha256(sink.getvalue()).hexdigest(), fetched.requests

    with (
        client_of(tmp_path / "index", faults=every_first_time) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        assert list(pool.map(read, range(8))) == [(hashlib.sha256(w.read_bytes()).hexdigest(), 2) for w in wheels]
