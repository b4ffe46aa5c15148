"""The question `hash`: find the files with a SHA-256."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pypi_assets.leveldbs.versions.leveldb_manifest import file_sha256
from pypi_assets.lookup.hashes_reader import HashResult, KnownHashResult, parse_sha256_prefix
from pypi_assets.questions.names import Prefix, Sha256
from pypi_assets.questions.question import Accepts, Batch, CombinationError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

_DIGITS = 64
WholeSha256 = Annotated[
    str, Accepts(text="a SHA-256: 64 hex digits, in upper or lower case", pattern=f"^[0-9A-Fa-f]{{{_DIGITS}}}$")
]


@dataclass(frozen=True)
class HashParameters(Parameters):
    """Parameters of `hash`."""

    sha256: Sha256
    prefix: Prefix = False
    all: Annotated[bool, Accepts(text="also list deleted files, with their live serials, from the catalog")] = False


def _check(given: HashParameters) -> None:
    if given.all and given.prefix:
        raise CombinationError("all", True, "false with prefix")
    if not given.prefix and len(given.sha256) != _DIGITS:
        raise CombinationError("sha256", given.sha256, f"a SHA-256 of {_DIGITS} hex digits without prefix")


def _nothing_found(given: HashParameters) -> str:
    sha256 = given.sha256.lower()
    if given.all:
        return f"no file with the SHA-256 {sha256} was ever live"
    return f"no live file has {'a SHA-256 that begins with' if given.prefix else 'the SHA-256'} {sha256}"


def _with_times(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "live" in result:
        times = (f"since {since}" if until is None else f"{since} to {until}" for since, until in result["live"])
        result = {**result, "live": ", ".join(times)}
    yield result


def _several(snapshot: Snapshot, hashes: Sequence[str], _given: Parameters) -> Found[HashResult]:
    wanted = dict.fromkeys(one.lower() for one in hashes)
    return snapshot.collected("hashes", HashResult, [found for one in wanted for found in snapshot.files(one).results])


@question(
    "hash",
    path="/v1/hashes/{sha256}",
    batch=Batch(
        path="/v1/hashes",
        field="hashes",
        most=1_000,
        summary="Find the live files that have one of several SHA-256 hashes",
        description="Results are in the order of the hashes. A hash that no live file has is skipped.",
        item=WholeSha256,
        answer=_several,
    ),
    example="--file requests-2.32.3-py3-none-any.whl",
    argument="[SHA256]...",
    result=HashResult,
    columns=lambda given: ("sha256", "project", "version", "filename", "live" if given.all else "live_since"),
    name_column="sha256",
    rows=_with_times,
    sort_key=lambda result: (result["sha256"], result["normalized"], result["filename"]),
    key_size=3,
    check=_check,
    nothing_found=_nothing_found,
    name_of_file=file_sha256,
    needs_catalog=lambda given: given.all,
)
def hash_(snapshot: Snapshot, given: HashParameters, after: After = None) -> Found[HashResult] | Found[KnownHashResult]:
    """List the live files that have a SHA-256.

    Each file is listed with its project and version, and the serial since which it is live.
    """
    if given.prefix:
        return snapshot.hashes(parse_sha256_prefix(given.sha256), after)
    return snapshot.known_files(given.sha256.lower()) if given.all else snapshot.files(given.sha256.lower())
