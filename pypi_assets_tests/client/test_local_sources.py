"""A client of local files stays at one set of versions, skips corrupt ones, and continues lists of former sets."""

from pathlib import Path

import pytest

import pypi_assets
from pypi_assets.client import CursorError
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets_tests.service.conftest import changing as changing
from pypi_assets_tests.service.published import Published


def add_provider(published: Published) -> int:
    """Upload and publish another provider of a module, and return the serial."""
    published.add("wheel", "yaml-third", "1.0", files={"yaml/__init__.py": ""})
    return published.publish()


def files_of_newest(published: Published, dataset: str) -> list[Path]:
    """Return the files of the newest version of a dataset."""
    newest = max((published.home / "storage" / dataset / "leveldbs").iterdir())
    return sorted(newest.glob("*.ldb"))


def test_client_stays_at_its_versions_and_a_new_client_has_the_newest(changing: Published) -> None:
    first = changing.index.serial
    with pypi_assets.connect(changing.home) as client:
        assert client.module("yaml").serial == first
        second = add_provider(changing)
        assert client.module("yaml").serial == client.project("demo").serial == first
        with pypi_assets.connect(changing.home) as other:
            assert (other.module("yaml").serial, len(list(other.module("yaml")))) == (second, 3)


def test_list_is_completed_from_its_first_versions(changing: Published) -> None:
    with pypi_assets.connect(changing.home) as client:
        results = client.module("yaml", page_size=1)
        begun = [next(results)]
    add_provider(changing)
    with pypi_assets.connect(changing.home) as client:
        rest = client.module("yaml", cursor=results.cursor)
        assert rest.serial == results.serial < client.module("yaml").serial
        assert [one["project"] for one in [*begun, *rest]] == ["PyYAML", "yaml-copy"]
        for path in (changing.home / "storage" / "modules" / "input_lists").iterdir():
            path.unlink()
    with pypi_assets.connect(changing.home) as client, pytest.raises(CursorError):
        client.module("yaml", cursor=results.cursor)


def test_corrupt_version_is_skipped_with_its_set(changing: Published) -> None:
    first = changing.index.serial
    add_provider(changing)
    with pypi_assets.connect(changing.home) as client:
        results = client.module("yaml", page_size=1)
        next(results)
    for path in files_of_newest(changing, "modules"):
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-1])
    with pypi_assets.connect(changing.home) as client:
        assert client.module("yaml").serial == client.project("demo").serial == first
    with pypi_assets.connect(changing.home) as client, pytest.raises(LeveldbDamagedError):
        client.module("yaml", cursor=results.cursor)
    with pypi_assets.connect(changing.home) as client:
        assert client.command("dmeo").serial > first  # hints for commands do not need the dataset `modules`
        assert client.command("dmeo").hints
