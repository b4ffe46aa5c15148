"""The assets of LevelDB versions for look-ups, built from the dumps in use: one asset per dataset of the registry."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import dagster as dg

from pypi_assets.catalog.publications.allocated_names import require_version
from pypi_assets.defs.factories import AssetFactory, asset
from pypi_assets.defs.policy import leveldb_asset, leveldb_versions
from pypi_assets.defs.reporting import count_log, markdown_table, marking
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import NotBuiltYetError
from pypi_assets.leveldbs.format.open_leveldb import SampleRecord, sample_records
from pypi_assets.leveldbs.versions.input_lists import MANIFEST_NAME
from pypi_assets.leveldbs.versions.leveldb_manifest import PublishedVersion, read_published
from pypi_assets.leveldbs.versions.publish import BuildResult, build_version
from pypi_assets.storage.store import Storage

_DESCRIPTION = """A key-value database (LevelDB) for look-ups. {}

A partition is a version, such as `00042`, which the sensor `new_leveldb_version` adds; other keys are rejected. It is
built from the dumps: if there are only new dumps, on the previous version, and otherwise from scratch. If nothing has
changed, no version is published.
"""


_LONGEST_VALUE = 100
_SAMPLES = 5
_KEY_PARTS = r" \0 "  # shows the zero byte between the parts of a key


def _leveldb(dataset: Dataset) -> AssetFactory:
    @asset(
        name=leveldb_asset(dataset.name),
        description=_DESCRIPTION.format(dataset.description),
        deps=[
            dg.AssetDep("full_dump", partition_mapping=dg.AllPartitionMapping()),
            dg.AssetDep("incremental_dump", partition_mapping=dg.AllPartitionMapping()),
            "late_dump",
            "compacted_dump",
        ],
        partitions=leveldb_versions,
        kinds={"leveldb"},
        pool=leveldb_asset(dataset.name),
        code_version=str(dataset.format),
    )
    def leveldb(
        context: dg.AssetExecutionContext,
        settings: SettingsResource,
        catalog: CatalogResource,
        storage: StorageResource,
    ) -> dg.MaterializeResult[None]:
        with marking(context) as mark:
            for name in sorted(context.partition_keys):
                started, samples = time.monotonic(), list[SampleRecord]()
                try:
                    result = build_version(
                        dataset.name,
                        storage=storage.get(),
                        catalog=catalog.get(),
                        version=require_version(catalog.get(), name).version,
                        write_buffer_bytes=settings.get().leveldb_write_buffer_bytes,
                        memory_bytes=settings.get().leveldb_memory_bytes,
                        work_dir=settings.get().leveldbs_dir,
                        progress=count_log(context, f"rows applied to {dataset.name}"),
                        look=partial(_add_samples, samples, dataset),
                    )
                except NotBuiltYetError as error:  # the other datasets of the run are built anyway
                    mark(name, {"published": False, "reason": str(error)})
                else:
                    seconds = {"seconds": round(time.monotonic() - started, 3)}
                    published = read_published(storage.get(), result.dataset, result.version)
                    mark.data_version = published.manifest.content_hash
                    mark(name, _metadata(storage.get(), dataset, result, published, samples) | seconds)
        return mark.result()

    return leveldb


def _add_samples(samples: list[SampleRecord], dataset: Dataset, db: Database) -> None:
    letters = dict.fromkeys(form[0] for form in dataset.key_schema)
    samples[:] = sample_records(db, letters, max(_SAMPLES, len(letters)))


def _metadata(
    storage: Storage,
    dataset: Dataset,
    result: BuildResult,
    published: PublishedVersion,
    samples: Sequence[SampleRecord],
) -> dict[str, Any]:
    """Return the place of a version, its numbers, the schema of its keys, and some records if it was just built."""
    files = published.manifest.files
    shown = [(_KEY_PARTS.join(one.key), one.value, one.size) for one in samples]
    return {
        "published": result.published,
        "reason": result.reason,
        "version": result.version,
        "serial": result.serial,
        "records": sum(result.counts.values()),
        "rows_applied": result.rows,
        "records_written": result.written,
        "bytes": sum(file.size for file in files),
        "files": len(files),
        "uri": dg.MetadataValue.path(storage.uri(published.path)),
        "manifest": dg.MetadataValue.path(storage.uri(f"{published.path}/{MANIFEST_NAME}")),
        "key schema": dg.MetadataValue.md(_key_schema(dataset, result.counts)),
        **(
            {"samples": dg.MetadataValue.md(markdown_table(("key", "value", "bytes"), shown, _LONGEST_VALUE))}
            if shown
            else {}
        ),
    }


def _key_schema(dataset: Dataset, counts: Mapping[str, int]) -> str:
    """Return a table of the kinds of keys, with the count of records that begin with each letter."""
    rows, counted = [], set[str]()
    for form, meaning in dataset.key_schema.items():
        letter = form[0]
        rows.append((form.replace(" ", _KEY_PARTS), meaning, "" if letter in counted else counts.get(letter, 0)))
        counted.add(letter)
    return markdown_table(("key", "value", "records"), rows)


LEVELDBS = [_leveldb(dataset) for dataset in DATASETS.values()]
