"""The migrations lead to the tables that the code uses."""

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from pypi_assets.catalog.database import (
    Catalog,
)
from pypi_assets.catalog.tables import metadata


def test_migrations_lead_to_the_tables_of_the_code(catalog: Catalog):
    with catalog.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
