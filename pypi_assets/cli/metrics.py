"""The command that prints, writes or serves the state of every stage as metrics for Prometheus."""

import time
from pathlib import Path

import click

from pypi_assets.cli.options import command
from pypi_assets.terminal import print_message

_METRICS_EVERY_S = 60.0
_GREATEST_PORT = 65_535


def _address(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, int] | None:
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _GREATEST_PORT:
        raise click.BadParameter(f"{value} is not HOST:PORT, such as 127.0.0.1:9464")
    return host.strip("[]"), int(port)


def _in_a_folder(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and not value.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {value.absolute().parent}; make it, or choose another")
    return value


@command("metrics", "--listen 127.0.0.1:9464")
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_in_a_folder,
    help="Write the metrics to this file, replacing it as a whole.",
)
@click.option(
    "--listen", metavar="HOST:PORT", callback=_address, help="Serve the metrics at this address until stopped."
)
@click.option(
    "--every",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Measure again every SECONDS until stopped; default with --listen: 60.",
)
def metrics_command(path: Path | None, listen: tuple[str, int] | None, every: float | None) -> None:
    """Print, write or serve metrics for Prometheus.

    They describe the state of every stage, like `pypi-assets status`. Without an option they are printed once.
    """
    from pypi_assets.metrics import StatusMetrics
    from pypi_assets.settings import load_settings

    taken = StatusMetrics(load_settings())
    taken.take()
    if listen:
        try:
            print_message(f"serving metrics at {taken.listen(*listen)}")
        except OSError as error:
            address = ":".join(map(str, listen))
            reason = f"{error.strerror or error}; choose another address with --listen"
            raise click.ClickException(f"cannot listen at {address}: {reason}") from error
    while True:
        if path:
            taken.write(path)
        elif not listen:
            click.echo(taken.text(), nl=False)
        if not (every or listen):
            return
        time.sleep(every or _METRICS_EVERY_S)
        taken.take()
