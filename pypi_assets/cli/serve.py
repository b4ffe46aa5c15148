"""The command that answers over HTTP."""

import os

import click

from pypi_assets.cli.options import command
from pypi_assets.terminal import print_message

_GREATEST_PORT = 65_535


@command("serve", "--port 8642")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8642, show_default=True, type=click.IntRange(0, _GREATEST_PORT), help="0: a free one.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="How many processes answer.")
@click.option(
    "--allow-quarantined", is_flag=True, help="Lead to the bytes of files that are quarantined on the index now."
)
def serve_command(host: str, port: int, workers: int, *, allow_quarantined: bool) -> None:
    """Answer over HTTP, until stopped.

    It only reads: the newest published versions, which it follows by itself, and the catalog for earlier serials.
    """
    from pypi_assets.service.server import serve
    from pypi_assets.setting_variables import ENV_PREFIX, read_variables
    from pypi_assets.settings import load_settings

    if allow_quarantined:
        os.environ[f"{ENV_PREFIX}SERVICE_ALLOW_QUARANTINED"] = "1"
    load_settings()
    if (index := read_variables().index) is not None:
        os.environ[f"{ENV_PREFIX}INDEX"] = index.name  # for the processes that answer
    try:
        serve(host, port, workers, ready=lambda url: print_message(f"answering at {url}"))
    except OSError as error:
        reason = f"{error.strerror or error}; choose another address with --host and --port"
        raise click.ClickException(f"cannot listen at {host}:{port}: {reason}") from error
