"""The supervisord file follows the plan, supervisord reads it that way, and restarts killed programs."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest

from pypi_assets.stack.layout import Layout, StackError
from pypi_assets.stack.programs import Program
from pypi_assets.stack.running import Keeper, only_one, stop_stack
from pypi_assets.stack.supervision import (
    Supervisor,
    log_of,
    program_names,
    read_addresses,
    supervisor_conf,
    write_supervisor_files,
)
from pypi_assets_tests.stack.plans import plan, server
from pypi_assets_tests.waiting import until


def parsed(text: str) -> RawConfigParser:
    file = RawConfigParser()
    file.read_string(text)
    return file


def test_supervisor_conf_has_each_program_in_order_and_restarts_it_forever(tmp_path: Path):
    layout = Layout(tmp_path / "50%")
    programs = plan(layout.home, postgres=server(layout)).programs()
    file = parsed(supervisor_conf(layout, programs, tmp_path))
    sections = [file[f"program:{program.name}"] for program in programs]
    assert [section.getint("priority") for section in sections] == list(range(1, len(programs) + 1))
    assert all(section["autorestart"] == "true" for section in sections)
    assert all(section.getint("startretries") >= 100_000 for section in sections)
    assert file["program:postgres"]["stopsignal"] == "INT"
    assert not file["program:postgres"].getboolean("stopasgroup")
    assert f"{layout.postgres}".replace("%", "%%") in file["program:postgres"]["command"]


def test_supervisor_conf_restarts_an_ending_program_only_after_failures(tmp_path: Path):
    programs = plan(tmp_path, follows=False).programs()
    section = parsed(supervisor_conf(Layout(tmp_path), programs, tmp_path))["program:first"]
    assert section["autorestart"] == "unexpected"


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    """Yield a stack of two small programs. The log of `second` counts its starts."""
    layout = Layout(tmp_path)
    layout.make_folders()
    lives = "import os, time; print(os.environ['MARK'], flush=True); time.sleep(1000)"
    listens = (
        f"import socket, time; one = socket.socket(socket.AF_UNIX); one.bind({str(layout.sockets / 'first')!r});"
        " one.listen(); time.sleep(1000)"
    )
    address = f"unix:{layout.sockets / 'first'}"
    first = Program("first", (sys.executable, "-c", listens), answers_at=address)
    second = Program("second", (sys.executable, "-c", lives), awaits=(address,))
    write_supervisor_files(layout, [first, second], tmp_path, {"MARK": "it's 100%"})
    yield layout
    stop_stack(layout)


def pids(layout: Layout) -> dict[str, int]:
    return {state.name: state.pid for state in Supervisor(layout).states() or ()}


def starts(layout: Layout) -> int:
    log = log_of(layout, "second")
    return log.read_text().count("it's 100%\n") if log.exists() else 0


@pytest.mark.nightly
def test_keeper_restarts_killed_programs_and_ends_cleanly(layout: Layout):
    messages: list[str] = []
    keeper = Keeper(layout, messages.append)
    assert program_names(layout.supervisor_file) == ["first", "second"]
    assert Supervisor(layout).states() is None
    assert keeper.begin()
    assert keeper.await_ready()
    assert list(read_addresses(layout)) == ["first"]
    until(lambda: starts(layout) == 1)

    before = pids(layout)
    os.kill(before["second"], signal.SIGKILL)
    until(lambda: starts(layout) == 2)
    assert pids(layout)["first"] == before["first"]

    process = keeper.supervisor.process_id()
    assert process is not None
    os.kill(process, signal.SIGKILL)
    (layout.sockets / "first").unlink()  # this program does not remove its socket
    until(lambda: keeper.look() and starts(layout) == 3)
    assert len(messages) == 1

    with only_one(layout) as is_alone, only_one(layout) as is_second:
        assert (is_alone, is_second) == (True, False)
    adopting = Keeper(layout, messages.append)
    assert not adopting.begin()
    assert adopting.await_ready()
    stopping = threading.Thread(target=keeper.stop)
    stopping.start()
    until(lambda: not adopting.look())  # it restarts no program while the other one is ending
    stopping.join()
    assert not layout.supervisor_socket.exists()
    assert not stop_stack(layout)
    assert len(messages) == 1


def test_keeper_raises_an_error_if_supervisord_does_not_start(layout: Layout):
    layout.supervisor_file.write_text("[supervisord]\nloglevel=loud\n")
    keeper = Keeper(layout, pytest.fail)
    keeper.begin()
    with pytest.raises(StackError, match="loud"):
        keeper.await_ready()


def test_keeper_stopped_during_start_ends_all_programs(layout: Layout):
    stopping = threading.Event()
    keeper = Keeper(layout, pytest.fail, stopping)
    assert keeper.begin()
    stopping.set()
    assert not keeper.await_ready()
    keeper.stop()
    assert Supervisor(layout).states() is None
    assert not layout.supervisor_socket.exists()
