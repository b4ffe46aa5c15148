"""The command `serve`: what it refuses. `service/test_server.py` runs it."""

import socket

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed


def test_an_address_that_is_taken_is_an_error_that_names_it(commands: Commands):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = commands.refused("serve", "--port", port)
    assert unnamed(message, f"127.0.0.1:{port}") == []


def test_it_takes_a_port_and_a_count_of_workers(commands: Commands):
    assert "--port" in commands.refused("serve", "--port", "70000", exit_code=2)
    assert "--workers" in commands.refused("serve", "--workers", "0", exit_code=2)
