"""Measure the list of projects that the service streams: `/simple/`, newest and at a serial, in JSON and in HTML.

`python -m benchmarks.simple_list [--projects 20000] [--files 3]` runs the service as a process over a generated catalog
of this many projects, and a tenth more that were removed. It prints the milliseconds until the first byte and until the
last one, the processor time, the bytes, and the additional memory of the service.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import requests
from sqlalchemy import insert, select

from benchmarks.filled_catalog import fill_catalog
from benchmarks.generated import write_full_dump_of
from benchmarks.service_home import memory_mb, processor_s, row_of, served
from pypi_assets.catalog.database import Catalog, at_a_time, open_catalog
from pypi_assets.catalog.observed.projects import enter_projects
from pypi_assets.catalog.tables import events, projects, sightings, snapshots
from pypi_assets.dumps.restore import restore_index
from pypi_assets.index.actions import Action
from pypi_assets.leveldbs.datasets.simple import SIMPLE
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.storage.store import open_storage

FORMS = {"JSON": "application/vnd.pypi.simple.v1+json", "HTML": "text/html"}
EVENTS = (Action.CREATE_PROJECT, Action.IGNORED, Action.ADD_FILE, Action.REMOVE_PROJECT)
REMOVED_EACH = 11


def is_removed(number: int) -> bool:
    return number % REMOVED_EACH == REMOVED_EACH - 1


def name_of(number: int) -> str:
    return f"project-{number:07}"


def added_at(number: int) -> int:
    """Return the serial at which the files of a project were added, the third of its four serials."""
    return len(EVENTS) * number + 3


def rows(count: int, files: int) -> Iterator[dict[str, object]]:
    """Yield `files` wheels of each project that was not removed."""
    for number in range(count):
        if not is_removed(number):
            for version in range(files):
                filename = f"project_{number:07}-{version}.0-py3-none-any.whl"
                own = {"version": f"{version}.0", "filename": filename}
                yield row_of(name_of(number), added_at(number), **own)


def add_events(catalog: Catalog, count: int) -> None:
    """Insert the events of all projects, and the page or the 404 that was seen after them."""
    last = added_at(count - 1)
    with catalog.write() as connection:
        enter_projects(connection, [(name_of(number), 0) for number in range(count) if is_removed(number)])
        connection.execute(insert(snapshots).values(id=1, sha256="0", content=b"", files=0))
        named = connection.execute(select(projects.c.normalized, projects.c.id))
        ids = {name: project_id for name, project_id in named}
        for numbers in at_a_time(range(count)):
            connection.execute(
                insert(events),
                [
                    {
                        "serial": len(EVENTS) * number + place,
                        "project_id": ids[name_of(number)],
                        "name": name_of(number),
                        "timestamp": 0,
                        "action": kind.value,
                        "kind": kind.value,
                    }
                    for number in numbers
                    for place, kind in enumerate(EVENTS if is_removed(number) else EVENTS[:-1], start=1)
                ],
            )
            connection.execute(
                insert(sightings),
                [
                    {
                        "project_id": ids[name_of(number)],
                        "at": 0.0,
                        "page_serial": added_at(number) + is_removed(number),
                        "seen_through": last,
                        "snapshot_id": 1,
                        "page_status": None if is_removed(number) else "active",
                    }
                    for number in numbers
                ],
            )


def make_home(home: Path, count: int, files: int) -> int:
    """Write a catalog and the dataset `simple`, both complete up to one serial, and return the serial."""
    storage = open_storage((home / "storage").as_uri())
    catalog = open_catalog(f"sqlite:///{home / 'catalog.sqlite'}")
    fill_catalog(catalog, rows(count, files))
    add_events(catalog, count)
    serial = added_at(count - 1)
    write_full_dump_of(storage, rows(count, files), serial=serial)
    restore_index(catalog, storage)
    build_version(SIMPLE.name, storage=storage, catalog=catalog)
    catalog.close()
    return serial


def measured(session: requests.Session, url: str, form: str, pid: int) -> tuple[str, int]:
    """Return table columns for one request, and the number of projects in a JSON answer."""
    before, memory, began = processor_s(pid), memory_mb(pid), time.perf_counter()
    most, size, names, first = memory, 0, 0, 0.0
    with session.get(url, headers={"Accept": form, "Accept-Encoding": "identity"}, stream=True, timeout=600) as answer:
        answer.raise_for_status()
        for chunk in answer.iter_content(65_536):
            first = first or time.perf_counter() - began
            size += len(chunk)
            names += chunk.count(b'"name"')
            most = max(most, memory_mb(pid))
    taken, processor = time.perf_counter() - began, processor_s(pid) - before
    columns = f"{first * 1_000:.0f} | {taken * 1_000:.0f} | {processor * 1_000:.0f} | {size / 1e6:.2f} |"
    return f"{columns} {most - memory:.1f}", names


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=3)
    options = parser.parse_args()
    count = options.projects + (options.projects - 1) // (REMOVED_EACH - 1)
    with tempfile.TemporaryDirectory() as folder, requests.Session() as session:
        home = Path(folder)
        serial = make_home(home, count, options.files)
        with served(home) as (url, pid):
            print(
                "| list | first byte, ms | all, ms | processor, ms | MB | more memory, MB |\n|---|---|---|---|---|---|"
            )
            for name, form in FORMS.items():
                for when, path in (
                    ("newest", "simple/"),
                    ("again", "simple/"),
                    ("past", f"at/{serial}.{serial}/simple/"),
                ):
                    columns, listed = measured(session, url + path, form, pid)
                    assert name != "JSON" or listed == options.projects, listed
                    print(f"| {name}, {when} | {columns} |")


if __name__ == "__main__":
    main()
