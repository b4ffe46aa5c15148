"""Join committed range dumps into one dump, even if compaction would not choose them."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_registry import committed_dumps
from pypi_assets.dumps.compaction import join
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.storage.store import Storage


def compact(catalog: Catalog, storage: Storage, *directories: str) -> DumpManifest:
    """Commit one dump that joins the adjacent dumps in `directories`."""
    by_directory = {dump.directory: dump for dump in committed_dumps(catalog)}
    return join(catalog, storage, [by_directory[directory] for directory in directories])
