"""The commands that prove the journal: they walk its chains, compare it with another one, and sign it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets import terminal
from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON
from pypi_assets.progress import Progress
from pypi_assets.terminal import counted, print_json, print_message

if TYPE_CHECKING:
    from pypi_assets.journal.comparing import ComparedStream
    from pypi_assets.journal.verification import VerifiedStream
    from pypi_assets.storage.store import Storage

_STREAMS = ("index", "observed", "content")
_KEY = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("verify", epilog="Example: pypi-assets journal verify --against https://mirror.example.org/pypi-assets")
@click.option("--against", metavar="URL", help="Compare with the journal below this URL: file://, s3://, https:// ...")
@click.option("--stream", "streams", multiple=True, type=click.Choice(_STREAMS), help="Only this one; repeatable.")
@click.option("--public-key", type=_KEY, help="Require a checkpoint that is signed by this key (PEM).")
@JSON
def journal_verify_command(
    *, against: str | None, streams: tuple[str, ...], public_key: Path | None, as_json: bool
) -> None:
    """Walk the chains of the journal, and name the first fault of each.

    Reads all of it. With --against, what both have is compared as well. Exit code 1: something is wrong.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.catalog.reports.journal_format import Stream
    from pypi_assets.journal.verification import verify_stream
    from pypi_assets.settings import load_settings

    wanted = [Stream(name) for name in streams or _STREAMS]
    storage = storage_from(load_settings(), read_only=True)  # a mirror can be without a catalog
    with terminal.progress_shown() as report:
        verified = [
            verify_stream(storage, stream, lambda records: report(Progress("records", records, 0))) for stream in wanted
        ]
    compared = [] if against is None else _compared(storage, against, [one for one in verified if one.is_sound])
    signed = {} if public_key is None else _signed(storage, public_key, verified)
    if as_json:
        print_json(_as_json(verified, compared, signed))
    else:
        _print(verified, compared, signed)
    is_equal = all(one.first is None for one in compared if one.stream != Stream.OBSERVED)
    if not (is_equal and all(one.is_sound for one in verified) and all(one is None for _, one in signed.values())):
        click.get_current_context().exit(1)


@click.command("sign", epilog="Example: pypi-assets journal sign --key journal.pem")
@click.option("--key", "key_file", type=_KEY, required=True, help="An Ed25519 key in PEM, without a password.")
def journal_sign_command(key_file: Path) -> None:
    """Sign the heads of the journal's streams, so that others can trust a copy of it by your public key.

    `openssl genpkey -algorithm ed25519 -out journal.pem` makes a key, and `openssl pkey -in journal.pem -pubout` shows
    its public part.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.catalog.reports.journal_format import Stream
    from pypi_assets.journal.published_heads import publish_heads
    from pypi_assets.journal.segment_files import read_head
    from pypi_assets.journal.signing import CheckpointError, load_private_key, sign_checkpoint
    from pypi_assets.settings import load_settings

    key, settings = load_private_key(key_file), load_settings()
    with existing_catalog(settings) as catalog:
        storage = storage_from(settings, catalog)
        heads = {stream: read_head(storage, stream.value) for stream in Stream}
        signed = [sign_checkpoint(storage, stream, key) for stream, head in heads.items() if head and head.number]
        if not signed:
            raise CheckpointError("the journal has no whole segment yet: there is nothing to sign")
        publish_heads(storage)
    for head in signed:
        print_message(f"{head.stream}: signed up to serial {head.end:,}")


def _compared(storage: "Storage", url: str, verified: "list[VerifiedStream]") -> "list[ComparedStream]":
    from pypi_assets.catalog.reports.journal_format import Stream
    from pypi_assets.journal.comparing import compare_stream, open_other
    from pypi_assets.journal.reading import Journal

    ours, theirs = Journal(storage), Journal(open_other(url))
    return [compare_stream(ours, theirs, Stream(one.stream)) for one in verified]


def _signed(
    storage: "Storage", key_file: Path, verified: "list[VerifiedStream]"
) -> dict[str, tuple[int | None, str | None]]:
    """Up to which serial each stream is signed, and what is wrong with its checkpoint; neither where a stream has
    nothing yet that can be signed, next to one that is signed."""
    from pypi_assets.catalog.reports.journal_format import Stream
    from pypi_assets.journal.signing import CheckpointError, checkpoint_path, load_public_key, verify_checkpoint

    key = load_public_key(key_file)
    found: dict[str, tuple[int | None, str | None]] = {}
    for one in verified:
        if one.head is None:
            continue
        if not (one.head.number or storage.exists(checkpoint_path(one.stream))):
            found[one.stream] = None, None  # what has no whole segment yet cannot be signed
            continue
        try:
            found[one.stream] = verify_checkpoint(storage, Stream(one.stream), key), None
        except CheckpointError as error:
            found[one.stream] = None, str(error)
    if not any(through for through, _ in found.values()):
        unsigned = "the journal has no whole segment that is signed"
        found = {stream: (None, problem or unsigned) for stream, (_, problem) in found.items()}
    return found


def _as_json(
    verified: "list[VerifiedStream]",
    compared: "list[ComparedStream]",
    signed: dict[str, tuple[int | None, str | None]],
) -> dict[str, Any]:
    from pypi_assets.journal.comparing import as_json

    streams = [
        {
            "stream": one.stream,
            "start": one.head and one.head.readable_from,
            "end": one.head and one.head.through,
            "segments": one.segments,
            "records": one.records,
            "fault": one.fault and {name: getattr(one.fault, name) for name in ("file", "problem", "record", "offset")},
            "signed_through": signed.get(one.stream, (None, None))[0],
            "signature_problem": signed.get(one.stream, (None, None))[1],
        }
        for one in verified
    ]
    return {"streams": streams, "compared": [as_json(one) for one in compared]}


def _print(
    verified: "list[VerifiedStream]",
    compared: "list[ComparedStream]",
    signed: dict[str, tuple[int | None, str | None]],
) -> None:
    for one in verified:
        if one.fault is not None:
            print_message(f"{one.stream}: sound for {counted(one.records, 'record', ',')}, then: {one.fault}")
        elif one.head is not None:
            span = f"the serials {one.head.readable_from:,} to {one.head.through:,}"
            segments = counted(one.segments, "segment", ",")
            print_message(f"{one.stream}: sound, {counted(one.records, 'record', ',')} in {segments}, {span}")
        if one.stream in signed:
            through, problem = signed[one.stream]
            is_signed = (
                "not signed: it has no whole segment yet" if through is None else f"signed up to serial {through:,}"
            )
            print_message(f"{one.stream}: {problem or is_signed}")
    for of_both in compared:
        counts = f"{of_both.equal:,} equal, {of_both.differing:,} different"
        only = f"{of_both.only_ours:,} only here, {of_both.only_theirs:,} only there"
        print_message(f"{of_both.stream}, serials {of_both.start:,} to {of_both.end:,}: {counts}; {only}")
        if of_both.first is not None:
            first = of_both.first
            what = first.filename or "a record"
            print_message(f"  first: {what} at serial {first.serial:,}: {', '.join(first.fields) or 'one lacks it'}")
            print_message(f"  here:  {_shown(first.ours)}")
            print_message(f"  there: {_shown(first.theirs)}")


def _shown(record: dict[str, Any] | None) -> str:
    import orjson

    return "-" if record is None else orjson.dumps(record).decode()
