"""The command `serve`, which answers over HTTP."""

import os

import click

from pypi_assets.cli.options import command
from pypi_assets.terminal import print_message

_GREATEST_PORT = 65_535


@command("serve", "--port 8642")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=8642, show_default=True, type=click.IntRange(0, _GREATEST_PORT), help="Port; 0 picks a free one."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Number of worker processes.")
@click.option("--allow-quarantined", is_flag=True, help="Redirect to files even if the index has quarantined them now.")
def serve_command(host: str, port: int, workers: int, *, allow_quarantined: bool) -> None:
    """Answer over HTTP, until stopped.

    It is read-only: it serves the newest published versions, opens newer ones by itself, and uses the catalog for
    earlier serials.
    """
    from pypi_assets.service.server import serve
    from pypi_assets.setting_sources import ENV_PREFIX, read_variables
    from pypi_assets.settings import load_settings

    if allow_quarantined:
        os.environ[f"{ENV_PREFIX}SERVICE_ALLOW_QUARANTINED"] = "1"
    load_settings()
    if (index := read_variables().index) is not None:
        os.environ[f"{ENV_PREFIX}INDEX"] = index.name  # for the worker processes
    try:
        serve(host, port, workers, ready=lambda url: print_message(f"answering at {url}"))
    except OSError as error:
        reason = f"{error.strerror or error}; choose another address with --host and --port"
        raise click.ClickException(f"cannot listen on {host}:{port}: {reason}") from error
