"""The command that lists the live distributions."""

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.followed_notes import among, note_of
from pypi_assets.cli.moments import AT, catalog_at
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment


@command("files", "--project requests --at 1200")
@click.option("--project", help="Only the files of this project.")
@AT
@row_output
def files_command(project: str | None, at: "Moment | None", output: Output) -> None:
    """List the live distributions."""
    from pypi_assets.catalog.observed.followed import count_answered
    from pypi_assets.catalog.observed.projects import find_project
    from pypi_assets.catalog.reports.live_files import live_files
    from pypi_assets.catalog.reports.project_following import require_answered
    from pypi_assets.lookup.catalog_hints import unknown_project_hints

    with catalog_at(at) as (catalog, serial):
        with catalog.read() as connection:
            known = project is None or find_project(connection, project) is not None
            following = None if project is None else require_answered(connection, project, serial)
            notes = list(note_of(following))
            followed = count_answered(connection, serial) if project is None else None
            if project and not known and not notes:
                for message in (f"the catalog knows no project {project}", *unknown_project_hints(connection, project)):
                    print_message(message)
        columns = ("filename", "project", "version", "kind", "yanked", "outcome", "live_since")
        with closing(live_files(catalog, serial, project)) as files:  # which reads on while it is printed
            count = print_rows(columns, (asdict(file) for file in files), output)
        if notes:
            print_message(notes[0])
        elif known and not count:
            of = f"of {project} " if project else ""
            print_message(f"no distribution {of}is live at serial {serial}{among(followed)}")
        elif followed is not None:
            print_message(f"as of serial {serial}{among(followed)}")
