"""Where the files of an export lie."""

from pypi_assets.parquet.export_manifest import FILE_NAME, export_path, file_path, files_glob, manifest_path


def test_all_files_of_an_export_lie_in_its_folder() -> None:
    assert export_path("0-1350.2") == "parquet/python_distribution_data/0-1350.2"
    assert manifest_path("0-1350.2") == f"{export_path('0-1350.2')}/_MANIFEST.json"
    assert file_path("0-1350.2", FILE_NAME.format(shard=7)).endswith("/0-1350.2/python_distribution_data0007.parquet")
    assert files_glob("0-1350.2") == f"{export_path('0-1350.2')}/*.parquet"
