"""The commands `pypi-assets index ...`, for kinds of index that other packages add."""

from pathlib import Path

import click

from pypi_assets.cli.options import command


@click.group("index")
def index_group() -> None:
    """Add kinds of index."""


@command("new", "shelf --into shelf-index", group=index_group)
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder of the package, which must be empty or not exist; default: NAME-index.",
)
def new_command(name: str, into: Path | None) -> None:
    """Write a package that adds the kind of index NAME.

    It is a working example with tests. Change it to read the pages of your index.
    """
    from pypi_assets.index.new_kind import require_name, write_package

    require_name(name)
    folder = Path(f"{name}-index") if into is None else into
    for path in write_package(name, folder):
        click.echo(f"wrote {path}")
    click.echo(f"now run: pip install -e {folder} && pytest {folder}")
