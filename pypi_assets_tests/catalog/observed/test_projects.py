"""Projects are found by their names."""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import enter_projects, project_ids
from pypi_assets.catalog.tables import projects


def test_ids_are_found_of_any_number_of_names_however_they_are_written(catalog: Catalog):
    odd = ["ü-\U0001f40d", 'quoted-"-and-\\', "[1]", "null", "1", "a\nb", "{}", "'"]
    many = [f"project{number}" for number in range(3_000)]
    with catalog.write() as connection:
        enter_projects(connection, [(name, 0) for name in odd + many])
        found = project_ids(connection, [*many, *odd, "unknown"])
        named = {name: id_ for name, id_ in connection.execute(select(projects.c.normalized, projects.c.id))}
    assert found == named
    assert len(found) == len(odd) + len(many)
