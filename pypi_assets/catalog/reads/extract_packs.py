"""Which packs of extracts there are, and whether anything points into them. extracts/packs.py has their format."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, exists, select

from pypi_assets.catalog.database import insert_missing
from pypi_assets.catalog.tables import distribution_data, distributions, extract_packs, projects

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


def used_packs(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """The names of packs into which a distribution points, in their order, up to `limit` of those after `after`."""
    name = extract_packs.c.name
    return connection.scalars(select(name).where(name > after, _IS_USED).order_by(name).limit(limit)).all()


def have_extracts(connection: Connection, files: Collection[tuple[str, str]]) -> bool:
    """Whether the catalog has an extract, in whatever pack, of each of the files: (normalized project, filename)."""
    found = connection.execute(
        select(projects.c.normalized, distributions.c.filename)
        .join(distributions, distributions.c.project_id == projects.c.id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(
            projects.c.normalized.in_({project for project, _ in files}),
            distributions.c.filename.in_({filename for _, filename in files}),
            distribution_data.c.pack_id.is_not(None),
        )
    )
    return {(row.normalized, row.filename) for row in found}.issuperset(files)


def forget_pack(connection: Connection, name: str) -> bool:
    """Removes the pack's row unless a distribution points into it; whether none does."""
    connection.execute(delete(extract_packs).where(extract_packs.c.name == name, ~_IS_USED))
    return connection.scalar(select(extract_packs.c.id).where(extract_packs.c.name == name)) is None
