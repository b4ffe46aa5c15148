from pypi_assets.catalog.reports.moments import first_and_last_serial
from pypi_assets_tests.small_catalog import small_catalog


def test_changes_of_any_file_count_up_to_the_serial(tmp_path):
    small = small_catalog(tmp_path)
    small.add(5, "demo", "1", "demo-1.tar.gz")
    small.add(10, "demo", "2", "demo-2.tar.gz")
    small.yank(15, "demo-1.tar.gz")
    small.unyank(20, "demo-1.tar.gz")
    small.remove(25, "demo-2.tar.gz")
    with small.catalog.read() as connection:
        found = {serial: first_and_last_serial(connection, "demo", serial) for serial in (4, 5, 12, 17, 22, 99)}
        assert first_and_last_serial(connection, "none", 99) == (None, None)
    small.catalog.close()
    assert found == {4: (None, None), 5: (5, 5), 12: (5, 10), 17: (5, 15), 22: (5, 20), 99: (5, 25)}
