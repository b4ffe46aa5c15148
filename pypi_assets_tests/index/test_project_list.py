import io
import json

import pytest

from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import BrokenEntry, ListedProject
from pypi_assets.index.pages import read_listed_projects, read_listing_serial
from pypi_assets_tests.naming import naming

URL = "https://index.example.org/simple/"
META = {"api-version": "1.4", "_last-serial": 7}
PROJECTS = [{"name": "Demo.Pkg", "_last-serial": 7}, {"name": "demo_lib"}]


def body(**document: object) -> io.BytesIO:
    return io.BytesIO(json.dumps(document).encode())


@pytest.mark.parametrize(
    "listing", [body(meta=META, projects=PROJECTS), body(projects=PROJECTS, meta=META)], ids=["meta first", "meta last"]
)
def test_serial_is_read_before_or_after_the_projects(listing: io.BytesIO) -> None:
    assert read_listing_serial(listing, URL) == 7
    assert list(read_listed_projects(listing, URL)) == [ListedProject("Demo.Pkg", 7), ListedProject("demo_lib", None)]


def test_empty_index_lists_nothing() -> None:
    assert list(read_listed_projects(body(meta=META, projects=[]), URL)) == []


@pytest.mark.parametrize(
    "listing",
    [
        body(meta=META),
        body(meta=META, projects={}),
        body(meta=META, projects=[7]),
        body(meta=META, projects=[{"_last-serial": 7}] * 5),
        body(meta=META, projects=[*PROJECTS, *[{"name": ""}] * 11]),
        body(meta=META, projects=[*PROJECTS, *[7] * 5_000]),
    ],
    ids=lambda listing: listing.getvalue().decode()[:60],
)
def test_content_that_is_not_a_project_list_is_rejected(listing: io.BytesIO) -> None:
    with pytest.raises(RefusedError, match=naming(URL)):
        list(read_listed_projects(listing, URL))


@pytest.mark.parametrize(
    ("entry", "listed"),
    [
        (7, []),
        ({"_last-serial": 7}, []),
        ({"name": ""}, []),
        ({"name": "a" * 513}, []),
        ({"name": "a\0b"}, []),
        ({"name": "a", "_last-serial": "7"}, [ListedProject("a", None)]),
        ({"name": "a", "_last-serial": 1.5}, [ListedProject("a", None)]),
        ({"name": "a", "_last-serial": 2**63}, [ListedProject("a", None)]),
    ],
)
def test_broken_entry_does_not_affect_others(entry: object, listed: list[ListedProject]) -> None:
    first, broken, *rest = read_listed_projects(body(meta=META, projects=[PROJECTS[0], entry, PROJECTS[1]]), URL)
    assert first == ListedProject("Demo.Pkg", 7)
    assert isinstance(broken, BrokenEntry)
    assert broken.name == ("a" if listed else None)
    assert rest == [*listed, ListedProject("demo_lib", None)]


@pytest.mark.parametrize("listing", [body(projects=[]), body(meta={"api-version": "2.0"}), io.BytesIO(b"[]")])
def test_unknown_api_version_is_rejected(listing: io.BytesIO) -> None:
    with pytest.raises(RefusedError):
        read_listing_serial(listing, URL)


@pytest.mark.parametrize("keep", [0, 1, 40, 100, -1])
def test_truncated_list_is_an_error(keep: int) -> None:
    whole = json.dumps({"meta": META, "projects": PROJECTS}).encode()
    with pytest.raises(TransientError):
        list(read_listed_projects(io.BytesIO(whole[:keep]), URL))
