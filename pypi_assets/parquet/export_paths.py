"""Where Parquet exports lie in the storage."""

from pypi_assets.dumps.dump_paths import MANIFEST_NAME

EXPORTS = "parquet/python_distribution_data"
FILE_NAME = "python_distribution_data{shard:04d}.parquet"


def export_path(directory: str) -> str:
    """The storage path of the export in `directory`, which is named like `0-1350` or `0-1350.2`."""
    return f"{EXPORTS}/{directory}"


def file_path(directory: str, name: str) -> str:
    return f"{export_path(directory)}/{name}"


def manifest_path(directory: str) -> str:
    return file_path(directory, MANIFEST_NAME)


def files_glob(directory: str) -> str:
    """What `read_parquet` of DuckDB takes for all files of the export, below the storage's URL."""
    return file_path(directory, "*.parquet")
