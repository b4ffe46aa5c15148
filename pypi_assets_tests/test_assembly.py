"""The parts do what the settings define."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pypi_assets import assembly
from pypi_assets.assembly import readers_from
from pypi_assets.distributions.sources import FileSource
from pypi_assets.settings import load_settings
from pypi_assets_tests.builders import make_wheel


@pytest.mark.parametrize(("connections", "processors", "readers"), [(3, 1, 3), (1, 2, 2), (1, None, 1)])
def test_no_connection_and_no_processor_waits_for_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: int, processors: int | None, readers: int
) -> None:
    monkeypatch.setattr(assembly.os, "cpu_count", lambda: processors)
    wheel = make_wheel(tmp_path, "demo", "1.0")
    all_at_work = threading.Barrier(readers)

    class Download(FileSource):
        def read_at(self, offset: int, size: int) -> bytes:
            all_at_work.wait(60)
            return super().read_at(offset, size)

    def errors(_: int) -> object:
        return pool.read(Download(io.BytesIO(wheel.read_bytes())), wheel.name).record.error

    with (
        readers_from(load_settings(home=tmp_path, max_connections=connections)) as pool,
        ThreadPoolExecutor(readers) as threads,
    ):
        assert list(threads.map(errors, range(readers))) == [None] * readers
