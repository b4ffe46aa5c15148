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
def test_the_serial_is_found_on_either_side_of_the_projects(listing: io.BytesIO) -> None:
    assert read_listing_serial(listing, URL) == 7
    assert list(read_listed_projects(listing, URL)) == [ListedProject("Demo.Pkg", 7), ListedProject("demo_lib", None)]


def test_an_empty_index_lists_nothing() -> None:
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
def test_what_is_no_list_of_projects_is_refused_instead_of_empty(listing: io.BytesIO) -> None:
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
def test_a_broken_entry_costs_no_other(entry: object, listed: list[ListedProject]) -> None:
    first, broken, *rest = read_listed_projects(body(meta=META, projects=[PROJECTS[0], entry, PROJECTS[1]]), URL)
    assert first == ListedProject("Demo.Pkg", 7)
    assert isinstance(broken, BrokenEntry)
    assert broken.name == ("a" if listed else None)
    assert rest == [*listed, ListedProject("demo_lib", None)]


@pytest.mark.parametrize("listing", [body(projects=[]), body(meta={"api-version": "2.0"}), io.BytesIO(b"[]")])
def test_an_unknown_version_is_refused(listing: io.BytesIO) -> None:
    with pytest.raises(RefusedError):
        read_listing_serial(listing, URL)


@pytest.mark.parametrize("keep", [0, 1, 40, 100, -1])
def test_a_list_cut_short_is_an_error_and_not_a_shorter_list(keep: int) -> None:
    whole = json.dumps({"meta": META, "projects": PROJECTS}).encode()
    with pytest.raises(TransientError):
        list(read_listed_projects(io.BytesIO(whole[:keep]), URL))
