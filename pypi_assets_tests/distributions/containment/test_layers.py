"""Each layer stops its share of attempts, all layers together stop every attempt, and reading still works."""

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.distributions import reader_pool
from pypi_assets.distributions.containment import kernel, layers
from pypi_assets.distributions.containment.layers import LAYERS, MissingLayer, missing_layers
from pypi_assets.distributions.extract import DICTIONARY_ID, Extract, encode_extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader import read_distribution
from pypi_assets.distributions.reader_pool import (
    ReaderFailure,
    ReaderPool,
    ReaderStartError,
    StoredExtract,
    UncontainedReaderError,
    WholeFile,
)
from pypi_assets.distributions.record import READABLE_KINDS, ErrorKind
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel
from pypi_assets_tests.distributions.containment.attempts import ATTEMPTS, DONE, LIMITS
from pypi_assets_tests.distributions.containment.targets import targets
from pypi_assets_tests.distributions.hostile import CASES
from pypi_assets_tests.distributions.odd_files import ODD_FILES
from pypi_assets_tests.distributions.pooled_files import wheel
from pypi_assets_tests.distributions.same_records import MAX_KNOWN_BYTES
from pypi_assets_tests.distributions.small_archives import Stream
from pypi_assets_tests.naming import naming

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")

LANDLOCK = {
    "read environment of parent",
    "read memory of parent",
    "copy memory of parent",
    "trace parent",
    "take descriptor of parent",
    "read a file",
    "read a file of the user",
    "list a folder",
    "write a file",
    "append to a file",
    "cut a file",
    "make a folder",
    "make a symbolic link",
    "make a hard link",
    "make a pipe",
    "rename a file",
    "delete a file",
    "open by openat2",
    "start a program",
    "mount a file system",
}
"""Attempts that every version of Landlock stops."""
LANDLOCK_FOR_TCP = {"connect by tcp", "listen on tcp"}
LANDLOCK_FOR_SIGNALS = {"signal parent", "signal another process", "connect to an abstract socket"}
BY_LIMITS_ALONE = {"take much memory", "write a large file", "open many files"}
"""Attempts that use memory. seccomp allows the calls themselves."""
BY_CAPABILITIES = {"mount a file system", "join a namespace", "set the clock", "load bpf"}
"""Attempts that need root's permissions."""


@pytest.fixture
def variables() -> Iterator[dict[str, str]]:
    with targets() as made:
        yield made


def outcomes(variables: dict[str, str], *names: str) -> dict[str, str]:
    """Return the outcome of each attempt in these layers, made by a child of this process."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [sys.executable, "-m", "pypi_assets_tests.distributions.containment.attempts", *names],
            env=os.environ | variables,
            stdin=theirs,
            stdout=subprocess.PIPE,
            timeout=60,
            check=True,
        )
    result: dict[str, str] = json.loads(done.stdout)
    assert list(result) == list(ATTEMPTS)
    return result


def stopped(variables: dict[str, str], *names: str) -> set[str]:
    return {name for name, outcome in outcomes(variables, *names).items() if outcome != DONE}


def test_landlock_stops_access_to_files_and_processes(variables: dict[str, str]) -> None:
    expected = set(LANDLOCK)
    if kernel.version() >= kernel.NETWORK_SINCE:
        expected |= LANDLOCK_FOR_TCP
    if kernel.version() >= kernel.SCOPES_SINCE:
        expected |= LANDLOCK_FOR_SIGNALS
    assert stopped(variables, "no new privileges", "Landlock") >= expected


def test_seccomp_stops_all_but_memory_use(variables: dict[str, str]) -> None:
    found = outcomes(variables, "no new privileges", "seccomp")
    assert {name for name, outcome in found.items() if outcome == DONE} == BY_LIMITS_ALONE
    assert {found[name] for name in ("call clone3", "open by openat2", "use io uring")} == {"stopped ENOSYS"}


def test_limits_stop_memory_use(variables: dict[str, str]) -> None:
    assert stopped(variables, LIMITS) >= BY_LIMITS_ALONE


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root has capabilities")
def test_root_without_capabilities_has_no_extra_rights(variables: dict[str, str]) -> None:
    assert stopped(variables, "no capabilities") >= BY_CAPABILITIES
    assert not stopped(variables) & BY_CAPABILITIES


def test_hijacked_reader_can_do_nothing(
    tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = reader_pool._environment()
    monkeypatch.setattr(reader_pool, "_environment", lambda: environment | variables)
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    with ReaderPool(ReadLimits(), size=1) as pool:
        assert pool.read(*wheel(tmp_path, "attempts")).record.notes == (f"{len(ATTEMPTS)} attempts",)
        assert pool.read(*wheel(tmp_path)).record.error is None
    place = Path(variables["TARGET_FOLDER"])
    assert sorted(path.name for path in place.iterdir()) == ["deleted", "file", "old", "socket"]
    assert (place / "file").read_text() == "text"


def test_kernel_reports_containment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *args, **options: started.append(popen(*args, **options)) or started[-1]
    )
    with ReaderPool(ReadLimits(), size=1, must_contain=True) as pool:
        assert pool.read(*wheel(tmp_path)).record.error is None
        lines = Path(f"/proc/{started[0].pid}/status").read_text().splitlines()
        shown = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert (shown["NoNewPrivs"], shown["Seccomp"], shown["Threads"]) == ("1", "2", "1")
    assert {shown[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}


@pytest.mark.nightly
@pytest.mark.parametrize("layer", [layer.name for layer in LAYERS[1:]])
def test_other_layers_hold_when_one_is_missing(
    tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    """Skip the first layer: every kernel of the last ten years has it, and others fail to work without it."""
    environment = reader_pool._environment()
    lacking = {"LACKING_LAYER": layer}
    monkeypatch.setattr(reader_pool, "_environment", lambda: environment | variables | lacking)
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    with ReaderPool(ReadLimits(), size=1) as pool:
        tried, *done = pool.read(*wheel(tmp_path, "attempts")).record.notes
    assert tried == f"{len(ATTEMPTS)} attempts"
    if layer != "seccomp":
        assert done == []
    else:
        assert not set(done) & (LANDLOCK | BY_LIMITS_ALONE | BY_CAPABILITIES)

    is_needed = next(candidate.is_needed for candidate in LAYERS if candidate.name == layer)
    with ReaderPool(ReadLimits(), size=1, must_contain=True) as pool:
        if is_needed:
            with pytest.raises(UncontainedReaderError, match=naming("PYPI_ASSETS_CONTAINMENT", layer)):
                pool.read(*wheel(tmp_path))
        else:
            assert pool.read(*wheel(tmp_path)).record.error is None


def test_uncontained_reader_does_not_start() -> None:
    assert issubclass(UncontainedReaderError, ReaderStartError)


def test_layer_denied_by_kernel_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(layers, "_close_descriptors", lambda: None)
    monkeypatch.setattr(layers, "_limit_resources", lambda *_: None)
    monkeypatch.setattr(
        layers,
        "LAYERS",
        [layers.Layer("one", lambda: None, refuse, True), layers.Layer("two", lambda: "no", refuse, False)],
    )
    second, first = layers.contain(1, 1)
    assert second == MissingLayer("two", "no", False)
    assert (first.name, first.is_needed) == ("one", True)
    assert "Operation not permitted" in first.reason
    assert missing_layers() == [second]
    assert str(second) == "two: no"


def test_older_kernels_lack_parts_of_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "version", lambda: 3)
    names = {layer.name: layer.reason for layer in missing_layers()}
    assert all(f"version {number}" in names["Landlock for TCP"] for number in (3, 4))
    assert "Landlock" not in names


def test_kernel_without_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(kernel, "version", refuse)
    missing = {layer.name: layer for layer in missing_layers()}
    assert missing["Landlock"].is_needed
    assert "Operation not supported" in missing["Landlock"].reason


def test_on_other_systems_all_layers_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers.kernel, "IS_LINUX", False)
    assert [layer.name for layer in missing_layers()] == [layer.name for layer in LAYERS]


def small_files() -> Iterator[tuple[str, bytes]]:
    """Return names and contents of all odd files and some hostile files, or of all of them with CONTAINED_FILES=all."""
    yield from ((filename, content) for _, filename, content in ODD_FILES)
    for case in CASES if os.environ.get("CONTAINED_FILES") == "all" else CASES[::10]:
        if parse_filename(case.filename).kind in READABLE_KINDS and len(content := case.build()) < MAX_KNOWN_BYTES:
            yield case.filename, content


@pytest.mark.nightly
def test_reading_opens_no_file_and_makes_no_other_system_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cover all archive kinds, compressions and metadata. A violation would end the reader."""
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.strict_reader")
    paths = [
        make_wheel(tmp_path, "demo", "1.0", requires_dist=["a"], entry_points="[a]\nb=c:d\n"),
        make_egg(tmp_path, "demo", "1.0", requires="a\n", top_level=["demo"]),
        *(
            make_sdist(tmp_path, "demo", f"1.{at}", format=suffix)
            for at, suffix in enumerate(("tar.gz", "tar.bz2", "tar.xz"))
        ),
        make_sdist(tmp_path, "demo", "2.0", format="tar", filename="demo-2.0.tar"),
        make_sdist(tmp_path, "demo", "2.1", format="zip"),
        make_sdist(tmp_path, "demo", "2.2", format="zip", filename="demo-2.2.tar.gz"),
    ]
    with ReaderPool(ReadLimits(), size=1, must_contain=True) as pool:
        stored, records = [], []
        for path in paths:
            content = path.read_bytes()
            expected = read_distribution(io.BytesIO(content), path.name, hash_content=False).record
            assert expected.error is None
            for source in (io.BytesIO(content), Stream(content)):
                finished = pool.read(source, path.name)
                assert finished.record == expected
            assert finished.extract is not None
            stored.append(StoredExtract(path.name, None, finished.extract))
            records.append(expected)
        unknown = f"dictionary {DICTIONARY_ID - 1}"
        *judged, failure = pool.judge([*stored, StoredExtract("demo-1.0.tar.gz", None, newer_extract())])
        assert judged == records
        assert isinstance(failure, ReaderFailure)
        assert "ExtractError" in failure.text
        assert unknown in failure.text
        files = list(small_files())
        together = pool.read_together([WholeFile(filename, None, content) for filename, content in files])
    for (filename, content), finished in zip(files, together, strict=True):
        if finished.record.error is not None and finished.record.error.kind == ErrorKind.READER_FAILURE:
            expected = read_distribution(io.BytesIO(content), filename, hash_content=False).record
            assert finished.record.error == expected.error, filename


def newer_extract() -> bytes:
    """Return an extract as a newer version with another dictionary would write it."""
    content = bytearray(encode_extract(Extract()))
    number = DICTIONARY_ID.to_bytes(2, "little")
    at = content.index(number)
    content[at : at + 2] = (DICTIONARY_ID - 1).to_bytes(2, "little")
    return bytes(content)


_DESCRIPTORS = """
import os
from pypi_assets.distributions.containment import layers

layers._close_descriptors()
names = [os.readlink(f"/proc/self/fd/{name}") for name in sorted(os.listdir("/proc/self/fd"), key=int)[:-1]]
os.write(1, " ".join(names).encode())
"""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_descriptors_and_terminal_are_closed(tmp_path: Path, is_terminal: bool) -> None:
    log = tmp_path / "log"
    ours, terminal = os.openpty()
    with log.open("wb") as file, Path("/etc/passwd").open("rb") as inherited:
        done = subprocess.run(
            [sys.executable, "-c", _DESCRIPTORS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=terminal if is_terminal else file,
            pass_fds=[inherited.fileno(), terminal],
            timeout=60,
            check=True,
        )
    os.close(ours)
    os.close(terminal)
    nothing, output, errors = done.stdout.decode().split()
    assert (nothing, output.partition(":")[0]) == ("/dev/null", "pipe")
    assert errors == ("/dev/null" if is_terminal else str(log))
