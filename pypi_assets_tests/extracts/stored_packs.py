"""Packs for tests of stored extracts, and the catalog's locations of extracts."""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import distribution_data, distributions, extract_packs
from pypi_assets.extracts.packs import PackedExtract, make_pack, pack_path
from pypi_assets.storage.store import Storage

EXTRACTS = [
    PackedExtract("demo", "demo-1.0-py3-none-any.whl", "a" * 64, b"one"),
    PackedExtract("demo", "demo-1.0.tar.gz", None, b""),
    PackedExtract("other", "other-2.0.tar.gz", "b" * 64, b"three" * 100),
]


def put(storage: Storage, extracts: list[PackedExtract] = EXTRACTS) -> str:
    pack = make_pack(extracts)
    storage.put(pack_path(pack.name), pack.content)
    return pack.name


def stored(storage: Storage) -> set[str]:
    return {file.path for file in storage.list("extracts")}


def places(catalog: Catalog) -> dict[str, tuple[str, int, int]]:
    """Return the location of each distribution's extract: pack, offset, length."""
    with catalog.read() as connection:
        rows = connection.execute(
            select(
                distributions.c.filename,
                extract_packs.c.name,
                distribution_data.c.pack_offset,
                distribution_data.c.pack_length,
            )
            .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
            .join(extract_packs, extract_packs.c.id == distribution_data.c.pack_id)
        )
        return {filename: (pack, offset, length) for filename, pack, offset, length in rows}
