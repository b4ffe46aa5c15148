"""Resources open their parts once on first use, and close only the parts they opened."""

from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets.defs.resources import Slot, build_resources
from pypi_assets.settings import SettingsError, load_settings
from pypi_assets.storage.store import open_storage


def test_slot_opens_once_and_again_after_emptying() -> None:
    opened: list[int] = []

    def open_part() -> list[int]:
        opened.append(len(opened))
        return list(opened)

    slot = Slot[list[int]]()
    assert slot.get(open_part) is slot.get(open_part)
    assert slot.take_opened() == [0]
    assert slot.take_opened() is None
    assert slot.get(open_part) == [0, 1]


def test_given_resources_are_used_and_not_closed(tmp_path: Path) -> None:
    catalog = open_catalog(f"sqlite:///{tmp_path / 'given.sqlite'}")
    storage = open_storage("memory:///")
    resources = build_resources(load_settings(home=tmp_path / "home"), catalog=catalog, storage=storage)
    assert resources.catalog.get() is catalog
    assert resources.storage.get() is storage
    resources.close()
    with catalog.read():
        pass
    catalog.close()
    assert not (tmp_path / "home").exists()


def test_parts_are_opened_once_on_first_use(tmp_path: Path) -> None:
    resources = build_resources(load_settings(home=tmp_path / "home"))
    assert not (tmp_path / "home").exists()
    assert resources.catalog.get() is resources.crawler.catalog.get()
    assert (tmp_path / "home").exists()
    resources.close()


def test_invalid_settings_are_raised_on_use() -> None:
    resources = build_resources(SettingsError("PYPI_ASSETS_HOME: wrong"))
    parts = [resources.settings, resources.catalog, resources.storage, resources.index, resources.readers]
    for part in [*parts, resources.crawler]:
        with pytest.raises(SettingsError, match="wrong"):
            part.get()
