"""Names that the catalog knows, for people who search for one that they cannot spell. Each query reads a bounded number
of rows, by an index.
"""

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.tables import distribution_data, distributions, module_roots, projects, releases


def next_project(connection: Connection, least: str) -> str | None:
    """The least normalized name of a project that is not less than `least`, by code points."""
    query = select(func.min(projects.c.normalized)).where(projects.c.normalized >= least)
    name: str | None = connection.scalar(query)
    return name


def next_module_root(connection: Connection, least: str) -> str | None:
    """The least name of a top-level module that is not less than `least`, by code points."""
    query = select(func.min(module_roots.c.name)).where(module_roots.c.name >= least)
    name: str | None = connection.scalar(query)
    return name


def providers_of_root(connection: Connection, root: str, most: int) -> list[tuple[str, str, str]]:
    """Releases with a file that provides a module below the top-level name `root`: (normalized name, project, version).

    Only `most` lists of modules are followed, and `most` files with one of them.
    """
    lists = select(module_roots.c.list_id).where(module_roots.c.name == root).limit(most).subquery()
    files = (
        select(distribution_data.c.distribution_id)
        .join(lists, lists.c.list_id == distribution_data.c.modules_id)
        .limit(most)
        .subquery()
    )
    query = (
        select(projects.c.normalized, projects.c.name, releases.c.version)
        .select_from(files)
        .join(distributions, distributions.c.id == files.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
    )
    return [(row.normalized, row.name, row.version) for row in connection.execute(query)]
