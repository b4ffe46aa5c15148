"""The command that lists the live distributions."""

from contextlib import closing
from dataclasses import asdict

import click

from pypi_assets.cli.followed_notes import among, note_of
from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_message, print_rows


@command("files", "--project requests --at-serial 1200")
@click.option("--project", help="Only the files of this project.")
@click.option("--at-serial", type=click.IntRange(0), help="As of this serial; default: the complete serial.")
@row_output
def files_command(project: str | None, at_serial: int | None, output: Output) -> None:
    """List the live distributions."""
    from pypi_assets.catalog.observed.followed import count_answered
    from pypi_assets.catalog.observed.projects import find_project
    from pypi_assets.catalog.reports.answerable_serials import answerable_serial
    from pypi_assets.catalog.reports.live_files import live_files
    from pypi_assets.catalog.reports.project_following import require_answered
    from pypi_assets.lookup.catalog_hints import unknown_project_hints
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog:
        serial = answerable_serial(catalog, at_serial)
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
