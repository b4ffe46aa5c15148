"""Names of the catalog are found by where they would be, with a bounded number of rows."""

from pathlib import Path

from pypi_assets.catalog.reports.live_files import next_module_root, next_project, providers_of_root
from pypi_assets_tests.small_catalog import small_catalog


def test_names_follow_each_other_by_code_points(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "b-project", "1", "b-1.zip", modules=("Upper.one", "lower", "größe"))
    small.add(2, "a", "1", "a-1.zip", modules=("lower", "lower.two"))
    small.add(3, "A", "2", "a-2.zip", modules=("lower",))
    with small.catalog.read() as connection:
        assert [next_project(connection, least) for least in ("", "a", "a\x01", "b-project", "c")] == [
            "a",
            "a",
            "b-project",
            "b-project",
            None,
        ]
        found, least = [], "\x01"
        while (name := next_module_root(connection, least)) is not None:
            found.append(name)
            least = f"{name}\x01"
        assert found == ["Upper", "größe", "lower"]
        provided = providers_of_root(connection, "lower", 10)
        assert sorted(provided) == [("a", "a", "1"), ("a", "a", "2"), ("b-project", "b-project", "1")]
        assert len(providers_of_root(connection, "lower", 2)) == 2
        assert providers_of_root(connection, "low", 10) == []
    small.catalog.close()
