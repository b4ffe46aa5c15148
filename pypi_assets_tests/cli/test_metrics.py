"""The command writes metrics to a file and serves them at an address."""

import re
import subprocess
import urllib.request
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.following.followers import until
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.prometheus import samples
from pypi_assets_tests.served_index import ServedIndex


@pytest.mark.nightly
def test_a_file_is_written_whole_again_and_again_and_an_address_answers(
    commands: Commands, index: ServedIndex, tmp_path: Path
) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    path = tmp_path / "pypi-assets.prom"
    commands.done("admin", "metrics", "--file", path)
    assert samples(path.read_text())["serial", "catalog"] == index.serial
    command = [*PROCESS, "admin", "metrics", "--every", "1"]
    command += ["--file", str(path), "--listen", "127.0.0.1:0"]
    path.unlink()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = re.fullmatch(r"serving metrics at (http://\S+)\n", process.stderr.readline())
            assert address
            with urllib.request.urlopen(address[1], timeout=60) as response:
                served = response.read().decode()
            assert samples(served)["serial", "catalog"] == index.serial
            index.wheel("demo", "2.0")
            until(lambda: samples(path.read_text() if path.exists() else "").get(("serial", "index")) == index.serial)
        finally:
            process.terminate()


@pytest.mark.parametrize("address", ["9464", ":9464", "localhost:", "localhost:none", "localhost:70000"])
def test_what_is_no_address_is_refused(commands: Commands, address: str) -> None:
    assert unnamed(commands.refused("admin", "metrics", "--listen", address, exit_code=2), address, "HOST:PORT") == []
