"""Which packs of extracts there are, and whether anything points into them. Their format is told in crawl/packs.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, exists, select

from pypi_assets.catalog.database import insert_missing
from pypi_assets.catalog.tables import distribution_data, extract_packs

_IS_USED = exists().where(distribution_data.c.pack_id == extract_packs.c.id)


@dataclass(frozen=True, slots=True)
class StoredPack:
    """A pack that lies whole in the storage, its size in bytes, and where in it (offset, length) each distribution's
    extract lies, by the distribution's id."""

    name: str
    size: int
    places: Mapping[int, tuple[int, int]]


def enter_pack(connection: Connection, pack: StoredPack) -> dict[int, tuple[int, int, int]]:
    """Enters the pack where it is not known; where each distribution's extract lies: the pack's id, offset, length."""
    insert_missing(connection, extract_packs, [{"name": pack.name, "size": pack.size}])
    pack_id = connection.execute(select(extract_packs.c.id).where(extract_packs.c.name == pack.name)).scalar_one()
    return {distribution_id: (pack_id, *place) for distribution_id, place in pack.places.items()}


def used_packs(connection: Connection, names: Sequence[str]) -> set[str]:
    """Those of `names` (a few hundred at a time) into which a distribution points."""
    return set(connection.scalars(select(extract_packs.c.name).where(extract_packs.c.name.in_(names), _IS_USED)))


def forget_pack(connection: Connection, name: str) -> bool:
    """Removes the pack's row unless a distribution points into it; whether none does."""
    connection.execute(delete(extract_packs).where(extract_packs.c.name == name, ~_IS_USED))
    return connection.scalar(select(extract_packs.c.id).where(extract_packs.c.name == name)) is None
