"""The command `mcp`, which offers questions to agents as tools."""

from ipaddress import ip_address

import click

from pypi_assets.cli.options import command
from pypi_assets.extras import install_command
from pypi_assets.terminal import print_message

_GREATEST_PORT = 65_535
_LIBRARIES = {"anyio", "mcp"}


class _LoopbackType(click.ParamType[tuple[str, int]]):
    """A loopback address with a port, such as 127.0.0.1:8650 or [::1]:8650."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        host, _, port = str(value).rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        try:
            is_loopback = host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            is_loopback = False
        if not is_loopback:
            self.fail(
                f"{value!r} is not a loopback address: pass 127.0.0.1:PORT, localhost:PORT or [::1]:PORT", param, ctx
            )
        if not (port.isascii() and port.isdigit() and int(port) <= _GREATEST_PORT):
            self.fail(f"{value!r} has no port from 0 to {_GREATEST_PORT}", param, ctx)
        return host, int(port)


@command("mcp", "--http 127.0.0.1:8650")
@click.option(
    "--http",
    "address",
    type=_LoopbackType(),
    metavar="HOST:PORT",
    help="Serve streamable HTTP on this loopback address; port 0 picks a free one. Default: standard input and output.",
)
def mcp_command(address: tuple[str, int] | None) -> None:
    """Offer questions to agents as tools (MCP), until stopped.

    Each question with a route is a read-only tool. Its answers are the same as those of `pypi-assets serve`.
    """
    try:
        from pypi_assets.mcp_server import run_on_http, run_on_stdio
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _LIBRARIES:
            raise
        raise click.ClickException(f"tools for agents need the extra mcp: `{install_command('mcp')}`") from error
    from pypi_assets.settings import load_settings

    settings = load_settings()
    if address is None:
        run_on_stdio(settings)
        return
    host, port = address
    try:
        run_on_http(settings, host, port, ready=lambda url: print_message(f"answering at {url}"))
    except OSError as error:
        reason = f"{error.strerror or error}; choose another address with --http"
        raise click.ClickException(f"cannot listen on {host}:{port}: {reason}") from error
