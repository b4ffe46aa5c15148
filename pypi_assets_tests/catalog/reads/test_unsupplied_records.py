"""Which records of an older extractor only reading the files again can bring up to date."""

from pathlib import Path

from sqlalchemy import select, update

from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reads.stored_extracts import count_unsupplied, make_pending, unsupplied_records
from pypi_assets.catalog.tables import distribution_data, distributions
from pypi_assets_tests.small_catalog import small_catalog


def test_live_files_with_an_address_and_an_older_record_are_found(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    names = [f"demo-{number}.zip" for number in range(6)]
    for name in names:
        small.add(1, "demo", "1", name)
    small.add(1, "other", "1", "other-1.zip")
    small.remove(2, names[0])

    with small.catalog.write() as connection:
        ids = dict(connection.execute(select(distributions.c.filename, distributions.c.id)).all())
        connection.execute(update(distribution_data).values(extractor_version=2))
        for name, values in {
            names[1]: {"outcome": Outcome.UNSUPPORTED},
            names[2]: {"extractor_version": 3},
            names[3]: {"outcome": Outcome.ERROR},
        }.items():
            of_file = distribution_data.c.distribution_id == ids[name]
            connection.execute(update(distribution_data).where(of_file).values(values))
        connection.execute(update(distributions).where(distributions.c.id == ids[names[4]]).values(url=None))

        found = unsupplied_records(connection, 3, limit=10)
        assert [record.filename for record in found] == [names[3], names[5], "other-1.zip"]
        assert [record.distribution_id for record in found] == [ids[record.filename] for record in found]
        assert unsupplied_records(connection, 3, after=found[0].distribution_id, limit=1) == found[1:2]
        assert unsupplied_records(connection, 3, found[2].project_id, limit=10) == found[2:]
        assert (count_unsupplied(connection, 3), count_unsupplied(connection, 3, found[2].project_id)) == (3, 1)
        assert count_unsupplied(connection, 2) == 0

        make_pending(connection, [record.distribution_id for record in found[:2]])
        assert unsupplied_records(connection, 3, limit=10) == found[2:]
    small.catalog.close()
