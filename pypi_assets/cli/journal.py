"""The commands `pypi-assets journal ...` that write, check and change the journal.

The journal has every change, in order, in segments with a chain of hashes. The commands that pass its records on are
in `journal_tail.py` and `journal_deliver.py`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets import terminal
from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.journal_deliver import journal_deliver_command, journal_letters_command, journal_publish_command
from pypi_assets.cli.journal_tail import journal_consumers_command, journal_tail_command
from pypi_assets.cli.options import JSON, command
from pypi_assets.progress import Progress
from pypi_assets.terminal import counted, local_time, print_json, print_json_rows, print_message, print_table
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.journal.comparing import ComparedStream
    from pypi_assets.journal.verification import VerifiedStream
    from pypi_assets.storage.store import Storage

_STREAMS = ("index", "observed", "content", "visits")


@click.group("journal")
def journal_group() -> None:
    """Write, read and check the journal of all changes.

    It has four streams: announcements of the index (`index`), changes of files (`observed`), the contents of files
    (`content`), and visits of pages (`visits`). Run `journal write` after each `pypi-assets crawl incremental` to add
    the changes.
    """


for _command in (
    journal_tail_command,
    journal_consumers_command,
    journal_deliver_command,
    journal_letters_command,
    journal_publish_command,
):
    journal_group.add_command(_command)


@command("write", group=journal_group)
@JSON
def journal_write_command(as_json: bool) -> None:
    """Write the changes that the journal lacks.

    In the streams observed, content and visits, each complete serial range becomes a segment. The stream index is
    divided at fixed serials. The first run takes about as long as a full dump.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.journal.publishing import write_missing
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        written = list(write_missing(catalog, storage, lambda records: report(Progress("records", records, 0))))
    if as_json:
        print_json([{"range": one.serials.key, "records": one.records, "bytes": one.size} for one in written])
        return
    for one in written:
        counts = ", ".join(f"{count:,} {stream}" for stream, count in sorted(one.records.items()))
        print_message(f"{one.serials}: {counts}")
    if not written:
        print_message("every complete range is in the journal")


@command("restart", "index", group=journal_group)
@click.argument("stream", type=click.Choice(_STREAMS))
def journal_restart_command(stream: str) -> None:
    """Start a new generation of STREAM from its beginning.

    This is needed if older events were stored after the stream was begun (`pypi-assets crawl full --with-history`), or
    if its files were lost. Readers find the new generation by themselves. The files of the old generation stay.
    """
    from pypi_assets.catalog.reports.journal_format import JournalStream
    from pypi_assets.components import storage_from
    from pypi_assets.journal.publishing import begin_generation
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        generation = begin_generation(catalog, storage_from(settings, catalog), JournalStream(stream))
    print_message(f"generation {generation} of the stream {stream} is begun: `pypi-assets journal write` writes it")


_KEY = click.Path(exists=True, dir_okay=False, path_type=Path)


@command("verify", "--against https://mirror.example.org/pypi-assets", group=journal_group)
@click.option("--against", metavar="URL", help="Compare with the journal below this URL: file://, s3://, https:// ...")
@click.option("--stream", "streams", multiple=True, type=click.Choice(_STREAMS), help="Check this stream; repeatable.")
@click.option("--public-key", type=_KEY, help="Require a checkpoint that is signed with this key (PEM).")
@JSON
def journal_verify_command(
    *, against: str | None, streams: tuple[str, ...], public_key: Path | None, as_json: bool
) -> None:
    """Verify the chain of each stream, and print its first error.

    This reads the whole journal. With --against, records that both journals have are compared. Exits with 1 for any
    error.
    """
    from pypi_assets.catalog.reports.journal_format import JournalStream
    from pypi_assets.components import storage_from
    from pypi_assets.journal.record_reader import no_journal
    from pypi_assets.journal.segment_files import JOURNAL
    from pypi_assets.journal.verification import verify_stream
    from pypi_assets.settings import load_settings

    wanted = [JournalStream(name) for name in streams or _STREAMS]
    storage = storage_from(load_settings(), read_only=True)  # a mirror may have no catalog
    if next(storage.list(JOURNAL), None) is None:
        raise no_journal(storage)
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
    differing = {JournalStream.OBSERVED, JournalStream.VISITS}  # each operator sees pages at other moments
    is_equal = all(one.first is None for one in compared if one.stream not in differing)
    if not (is_equal and all(one.is_sound for one in verified) and all(one is None for _, one in signed.values())):
        click.get_current_context().exit(1)


@command("sign", "--key journal.pem", group=journal_group)
@click.option("--key", "key_file", type=_KEY, required=True, help="The Ed25519 private key, in PEM without a password.")
def journal_sign_command(key_file: Path) -> None:
    """Sign the heads of the journal's streams, so that others can check a copy of it with your public key.

    `openssl genpkey -algorithm ed25519 -out journal.pem` makes a key, and `openssl pkey -in journal.pem -pubout` prints
    its public part.
    """
    from pypi_assets.catalog.reports.journal_format import JournalStream
    from pypi_assets.components import storage_from
    from pypi_assets.journal.segment_files import read_head
    from pypi_assets.journal.signing import JournalCheckpointError, load_private_key, publish_heads, sign_checkpoint
    from pypi_assets.settings import load_settings

    key, settings = load_private_key(key_file), load_settings()
    with existing_catalog(settings) as catalog:
        storage = storage_from(settings, catalog)
        heads = {stream: read_head(storage, stream.value) for stream in JournalStream}
        signed = [sign_checkpoint(storage, stream, key) for stream, head in heads.items() if head and head.number]
        if not signed:
            raise JournalCheckpointError("the journal has no complete segment yet: there is nothing to sign")
        publish_heads(storage)
    for head in signed:
        print_message(f"{head.stream}: signed up to serial {head.end:,}")


def _compared(storage: "Storage", url: str, verified: "list[VerifiedStream]") -> "list[ComparedStream]":
    from pypi_assets.catalog.reports.journal_format import JournalStream
    from pypi_assets.journal.comparing import compare_stream, open_other
    from pypi_assets.journal.record_reader import Journal

    ours, theirs = Journal(storage), Journal(open_other(url))
    return [compare_stream(ours, theirs, JournalStream(one.stream)) for one in verified]


def _signed(
    storage: "Storage", key_file: Path, verified: "list[VerifiedStream]"
) -> dict[str, tuple[int | None, str | None]]:
    """Return the last signed serial of each stream, and the problem of its checkpoint.

    Both are None if the stream has no complete segment yet, but another stream is signed.
    """
    from pypi_assets.catalog.reports.journal_format import JournalStream
    from pypi_assets.journal.signing import JournalCheckpointError, checkpoint_path, load_public_key, verify_checkpoint

    key = load_public_key(key_file)
    found: dict[str, tuple[int | None, str | None]] = {}
    for one in verified:
        if one.head is None:
            continue
        if not (one.head.number or storage.exists(checkpoint_path(one.stream))):
            found[one.stream] = None, None  # a stream without a complete segment cannot be signed
            continue
        try:
            found[one.stream] = verify_checkpoint(storage, JournalStream(one.stream), key), None
        except JournalCheckpointError as error:
            found[one.stream] = None, str(error)
    if not any(through for through, _ in found.values()):
        unsigned = "the journal has no complete segment that is signed"
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
                "not signed: it has no complete segment yet" if through is None else f"signed up to serial {through:,}"
            )
            print_message(f"{one.stream}: {problem or is_signed}")
    for comparison in compared:
        counts = f"{comparison.equal:,} equal, {comparison.differing:,} different"
        only = f"{comparison.only_ours:,} only here, {comparison.only_theirs:,} only there"
        print_message(f"{comparison.stream}, serials {comparison.start:,} to {comparison.end:,}: {counts}; {only}")
        if comparison.first is not None:
            first = comparison.first
            what = first.filename or "a record"
            print_message(
                f"  first: {what} at serial {first.serial:,}: {', '.join(first.fields) or 'only one side has it'}"
            )
            print_message(f"  here:  {_shown(first.ours)}")
            print_message(f"  there: {_shown(first.theirs)}")


def _shown(record: dict[str, Any] | None) -> str:
    import orjson

    return "-" if record is None else orjson.dumps(record).decode()


@command("replay", "--into sqlite:////data/replayed.sqlite", group=journal_group)
@click.option("--into", "database_url", required=True, metavar="DATABASE_URL", help="The database of the new catalog.")
@click.option("--from", "storage_url", metavar="STORAGE_URL", help="The storage of the journal; default: this storage.")
@click.option("--to", "serial", type=click.IntRange(1), help="The last serial; default: the journal's last serial.")
@click.option("--from-dump", is_flag=True, help="Start from the newest full dump, which is faster.")
@JSON
def journal_replay_command(
    *, database_url: str, storage_url: str | None, serial: int | None, from_dump: bool, as_json: bool
) -> None:
    """Build a catalog from the journal. It gives the same answers as the original, at each serial.

    With --from-dump, its answers begin at the dump's serial. A stopped replay can be continued, and a finished replay
    can be run again to add newer records of the journal.
    """
    from pypi_assets.catalog.database import open_catalog
    from pypi_assets.cli.contexts import existing_catalog
    from pypi_assets.components import storage_from
    from pypi_assets.journal.comparing import open_other
    from pypi_assets.journal.replay import replay
    from pypi_assets.settings import load_settings

    if storage_url is None:
        settings = load_settings()
        with existing_catalog(settings) as own:
            storage = storage_from(settings, own, read_only=True)
    else:
        storage = open_other(storage_url)
    catalog = open_catalog(database_url)
    try:
        with terminal.progress_shown() as report:
            done = replay(
                storage,
                catalog,
                serial,
                from_dump=from_dump,
                progress=lambda records: report(Progress("records", records, 0)),
            )
    finally:
        catalog.close()
    if as_json:
        print_json(
            {
                "through": done.through,
                "exact_from": done.exact_from,
                "records": done.records,
                "dump": done.dump,
                "began": done.began,
            }
        )
        return
    print_message(f"began {done.began}: {counted(done.records, 'record', ',')} entered")
    if done.exact_from > done.through:
        print_message(f"no exact answers up to serial {done.through:,}: they begin at {done.exact_from:,}")
        return
    print_message(f"answers for the serials {done.exact_from:,} to {done.through:,}")


_TAKEDOWN_WAIT_S = 600.0
_TAKEDOWN_COLUMNS = ("takedown", "added", "state", "project", "version", "file", "record", "reason")


@command("takedown", "demo --file demo-1.0.tar.gz --reason 'order of a court'", group=journal_group)
@click.argument("project", required=False)
@click.option("--release", metavar="VERSION", help="Redact only records of this release.")
@click.option("--file", "filename", metavar="FILENAME", help="Redact only records of this file.")
@click.option("--record", metavar="STREAM:SERIAL:ORDINAL", help="Redact one record, instead of a project's records.")
@click.option("--reason", required=True, help="The reason to show in place of each record.")
@click.option("--hide-name", is_flag=True, help="Also redact the project's name.")
@JSON
def journal_takedown_command(
    *,
    project: str | None,
    release: str | None,
    filename: str | None,
    record: str | None,
    reason: str,
    hide_name: bool,
    as_json: bool,
) -> None:
    """Redact all records of PROJECT in the journal, or only records of one release or file.

    A record of the kind `taken down` replaces each of them, also in segments that are written later. The chain still
    verifies, and mirrors get the change. Kept bytes of the named files are deleted, and never kept again. The catalog,
    dumps, LevelDBs and records that consumers have received stay unchanged.
    """
    from pypi_assets.catalog.publications.journal_segments import add_takedown
    from pypi_assets.components import storage_from
    from pypi_assets.journal.publishing import complete_takedowns
    from pypi_assets.journal.takedowns import TakedownError, wanted_takedown
    from pypi_assets.keeping.keeper import FileKeeper
    from pypi_assets.settings import load_settings

    settings = load_settings()
    try:
        wanted = wanted_takedown(reason, project, release, filename, record, hides_name=hide_name)
    except TakedownError as error:
        raise click.UsageError(str(error)) from None
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        added = add_takedown(catalog, wanted)

        def note(records: int) -> None:
            report(Progress("records", records, 0))

        FileKeeper(catalog, storage).delete_doomed()
        count = complete_takedowns(catalog, storage, note, wait_s=_TAKEDOWN_WAIT_S)
    if as_json:
        print_json({"takedown": added.id, "records": count})
    else:
        print_message(f"takedown {added.id}: {counted(count, 'record')} replaced")


@command("takedowns", "--lift 3", group=journal_group)
@click.option("--lift", type=int, metavar="ID", help="Lift this takedown for records that are written from now on.")
@JSON
def journal_takedowns_command(*, lift: int | None, as_json: bool) -> None:
    """List the takedowns of journal records."""
    from pypi_assets.catalog.publications.journal_segments import all_takedowns, lift_takedown
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog:
        if lift is not None:
            if not lift_takedown(catalog, lift):
                raise click.UsageError(f"there is no takedown {lift}: `pypi-assets journal takedowns` lists them")
            print_message(f"takedown {lift} is lifted; records that it has replaced stay replaced")
            return
        with catalog.read() as connection:
            found = all_takedowns(connection)
    records = [None if one.serial is None else f"{one.stream}:{one.serial}:{one.ordinal}" for one in found]
    if as_json:
        print_json_rows(
            {
                "id": one.id,
                "added": utc_text(one.added_at),
                "done": None if one.done_at is None else utc_text(one.done_at),
                "project": one.project,
                "version": one.version,
                "filename": one.filename,
                "record": record,
                "hides_name": one.hides_name,
                "reason": one.reason,
            }
            for one, record in zip(found, records, strict=True)
        )
        return
    print_table(
        _TAKEDOWN_COLUMNS,
        (
            (
                one.id,
                local_time(one.added_at),
                "waiting" if one.done_at is None else "done",
                one.project,
                one.version,
                one.filename,
                record,
                one.reason,
            )
            for one, record in zip(found, records, strict=True)
        ),
    )
    if not found:
        print_message("there are no takedowns")


_PRUNE_WAIT_S = 60.0


@command("prune", "--before 2025-01-01", group=journal_group)
@click.option("--before", required=True, metavar="SERIAL|DATE", help="Delete segments that end here or earlier.")
@click.option("--force", is_flag=True, help="Also delete segments that an active consumer has not read.")
@click.option("--dry-run", is_flag=True, help="Only report the segments that would be deleted.")
@JSON
def journal_prune_command(*, before: str, force: bool, dry_run: bool, as_json: bool) -> None:
    """Delete old segments of the journal.

    Segments that a replay from the newest full dump needs are always kept. Without --force, segments that a consumer
    seen within 30 days has not read are kept as well. Manifests are kept, so that the chain verifies from its
    beginning.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.journal.journal_errors import SinceError
    from pypi_assets.journal.pruning import prune_journal
    from pypi_assets.journal.record_reader import Journal
    from pypi_assets.journal.tailing import cursor_since
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        storage = storage_from(settings, catalog)
        try:
            serial = cursor_since(before, Journal(storage), catalog).whole_serial
        except SinceError as error:
            raise click.UsageError(f"--before: {error}") from None
        pruned = prune_journal(catalog, storage, serial, force=force, dry_run=dry_run, wait_s=_PRUNE_WAIT_S)
    if as_json:
        print_json(
            [
                {
                    "stream": one.stream,
                    "segments": one.segments,
                    "records": one.records,
                    "readable_from": one.readable_from,
                }
                for one in pruned
            ]
        )
        return
    done = "would be deleted" if dry_run else "deleted"
    for one in pruned:
        counts = f"{counted(one.segments, 'segment')} with {counted(one.records, 'record')}"
        print_message(f"{one.stream}: {counts} {done}; it begins after serial {one.readable_from:,}")
