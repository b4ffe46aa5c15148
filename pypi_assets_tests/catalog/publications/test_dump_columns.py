"""The columns of the dumps."""

from pypi_assets.catalog.publications.dump_columns import FIRST_COLUMNS


def test_the_first_columns_are_those_of_the_first_version() -> None:
    assert " ".join(FIRST_COLUMNS) == (
        "project normalized version filename tombstone kind url sha256 size uploaded_at requires_python yanked"
        " yanked_reason core_metadata_sha256 live_since outcome error_kind extractor_version metadata_version"
        " requires_dist provides_extra modules modules_by requires_by stubs left_out"
    )
