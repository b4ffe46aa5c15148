"""The part of `published.json` that names the manifests of the cover, in order."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import manifest_path
from pypi_assets.storage.published import name_objects, publish_part
from pypi_assets.storage.store import Storage

PART = "dumps"


def publish_dumps(catalog: Catalog, storage: Storage) -> None:
    """Name the dumps of the present cover in `published.json`. Call it after each commit."""

    def compute() -> object:
        covering = cover(catalog)
        paths = [manifest_path(directory) for directory in covering.directories]
        return {"serial": covering.serial, "manifests": name_objects(storage, PART, paths)}

    publish_part(storage, PART, compute)
