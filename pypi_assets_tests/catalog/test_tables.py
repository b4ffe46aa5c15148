"""The migrations lead to the tables that the code uses."""

from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, TextClause, create_engine, inspect

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import metadata

_VERSION_TABLE = "alembic_version"


def test_migrations_create_the_tables_of_the_code(catalog: Catalog):
    with catalog.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrated_database_equals_a_created_one(
    catalog: Catalog, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Includes what `compare_metadata` ignores: checks, conditions of indexes, collations."""
    url = f"sqlite:///{tmp_path / 'created.sqlite'}"
    if not catalog.is_sqlite:
        url = request.getfixturevalue("empty_postgres_database_url")
    created = create_engine(url)
    metadata.create_all(created)
    facts = facts_of(created)
    created.dispose()
    assert {table for _, table in facts} == set(metadata.tables)
    assert facts_of(catalog.engine) == facts


def facts_of(engine: Engine) -> dict[tuple[str, str], Any]:
    """Return the database's description of each table, by kind and table."""
    inspector = inspect(engine)
    kinds = {
        "columns": inspector.get_multi_columns(),
        "key": inspector.get_multi_pk_constraint(),
        "unique": inspector.get_multi_unique_constraints(),
        "checks": inspector.get_multi_check_constraints(),
        "references": inspector.get_multi_foreign_keys(),
        "indexes": inspector.get_multi_indexes(),
    }
    return {
        (kind, table): plain(found)
        for kind, by_table in kinds.items()
        for (_, table), found in by_table.items()
        if table != _VERSION_TABLE
    }


def plain(value: Any) -> Any:
    """Return the value in a comparable form: objects become text, and lists of named facts are sorted."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        found = [plain(one) for one in value]
        return sorted(found, key=lambda one: str(one["name"])) if found and isinstance(found[0], dict) else found
    return (
        value
        if value is None or isinstance(value, str | int)
        else str(value)
        if isinstance(value, TextClause)
        else repr(value)
    )
