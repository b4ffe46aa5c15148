"""Atom feeds of what changed: of a project's files, and of what names a module. RFC 4287 has the format.

A feed has the newest entries within a bounded distance from the end of the journal, and names the serial after which it
looked. Texts of the index are plain text in it, on one line.
"""

import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

import orjson
from packaging.utils import canonicalize_name

from pypi_assets.catalog.reports.journal_contents import NEW_PROVIDER, RELEASE_COMPARED
from pypi_assets.catalog.reports.journal_format import Record, Stream
from pypi_assets.inert import inert_line
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.looking_back import look_back
from pypi_assets.journal.reading import NoJournalError
from pypi_assets.journal.segment_files import JournalDamagedError
from pypi_assets.service.changes import damaged, no_journal
from pypi_assets.service.operations import Call, Operation
from pypi_assets.service.pages.addresses import page_address
from pypi_assets.service.parameters import ModuleName, Parameters, ProjectName
from pypi_assets.service.responses import Answer
from pypi_assets.service.service import Service
from pypi_assets.times import utc_text

ATOM = "application/atom+xml"
MOST_ENTRIES = 50
_NAMESPACE = "http://www.w3.org/2005/Atom"
_LONGEST_TEXT = 500
_MOST_NAMES = 20
_NEVER = "1970-01-01T00:00:00Z"


class ProjectFeedParameters(Parameters, frozen=True):
    """Of which project."""

    project: ProjectName


class ModuleFeedParameters(Parameters, frozen=True):
    """Of which module."""

    module: ModuleName


def _of_project(service: Service, call: Call[ProjectFeedParameters]) -> Answer:
    name = canonicalize_name(call.parameters.project)
    wanted = RecordFilter.parse(projects=[name])
    page = page_address("", "project", name)
    return _feed(service, Stream.OBSERVED, wanted, f"{name}: what changed", page, ("project", name))


def _of_module(service: Service, call: Call[ModuleFeedParameters]) -> Answer:
    name = call.parameters.module
    wanted = RecordFilter.parse(modules=[name]) if name.strip() else RecordFilter(modules=frozenset({name}))
    page = page_address("", "import", name)
    return _feed(service, Stream.CONTENT, wanted, f"{name}: which files have it", page, ("module", name))


def _feed(
    service: Service, stream: Stream, wanted: RecordFilter, title: str, page: str | None, identity: tuple[str, str]
) -> Answer:
    def made() -> tuple[bytes, int]:
        found = look_back(service.changes.journal, stream, wanted)
        newest: deque[bytes] = deque(found.lines, maxlen=MOST_ENTRIES)
        records = [orjson.loads(line) for line in reversed(newest)]
        text = f"The newest {MOST_ENTRIES} at most, of the serials above {found.since} up to {found.through}"
        return _document(title, text, page, _identity(*identity), records), found.through

    try:
        body, through = service.changes.remembered(("feed", *identity), made)
    except NoJournalError:
        raise no_journal() from None
    except JournalDamagedError:
        raise damaged() from None
    return Answer(body, f"{ATOM}; charset=utf-8", serial=through)


def _document(title: str, text: str, page: str | None, identity: str, records: Iterable[Record]) -> bytes:
    feed = ElementTree.Element("feed", {"xmlns": _NAMESPACE})
    entries = [_entry(record) for record in records]
    _add(feed, "id", identity)
    _add(feed, "title", title)
    _add(feed, "subtitle", text)
    _add(feed, "updated", max((str(entry.findtext("updated")) for entry in entries), default=_NEVER))
    author = ElementTree.SubElement(feed, "author")
    _add(author, "name", "pypi-assets")
    if page is not None:
        ElementTree.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": page})
    feed.extend(entries)
    body: bytes = ElementTree.tostring(feed, "utf-8", xml_declaration=True)
    return body


def _entry(record: Record) -> ElementTree.Element:
    entry = ElementTree.Element("entry")
    place = f"{record['serial']}.{record['stream']}.{record['ordinal']}"
    _add(entry, "id", _identity("change", f"{place}.{record['project'] or ''}"))
    _add(entry, "title", change_title(record))
    _add(entry, "updated", utc_text(record["at"]) or _NEVER)
    ElementTree.SubElement(entry, "category", {"term": str(record["kind"])})
    address = change_page(record)
    if address is not None:
        ElementTree.SubElement(entry, "link", {"rel": "alternate", "type": "text/html", "href": address})
    _add(entry, "summary", change_summary(record))
    return entry


def change_title(record: Record) -> str:
    """A change in a few words: `demo 2.0: file added: demo-2.0.tar.gz`."""
    release = " ".join(filter(None, [record["project"], record.get("version")]))
    what = record.get("filename") or record.get("module")
    return ": ".join(filter(None, [release, str(record["kind"]), what]))


def change_summary(record: Record) -> str:
    """More about a change, in a sentence."""
    parts = [f"at serial {record['of_serial']}"]
    if record["serial"] != record["of_serial"]:
        parts.append(f"published at serial {record['serial']}")
    if record.get("cause"):
        parts.append(f"cause: {record['cause']}")
    if record.get("yanked_reason"):
        parts.append(f"reason: {record['yanked_reason']}")
    if record["kind"] == RELEASE_COMPARED:
        parts.append(f"compared with {record['against']}")
        parts += [f"{what} {_named(record[what])}" for what in ("gained", "lost") if record[what]]
    if record["kind"] == NEW_PROVIDER and record["is_first"]:
        parts.append("the first project with this module")
    return "; ".join(parts)


def _named(difference: Mapping[str, list[str]]) -> str:
    return ", ".join(
        f"{fact.replace('_', ' ')}: {', '.join(names[:_MOST_NAMES])}{' ...' if len(names) > _MOST_NAMES else ''}"
        for fact, names in difference.items()
    )


def change_page(record: Record) -> str | None:
    """The address of the page that shows what a change is about; None where there is none."""
    name, version = record["normalized"], record.get("version")
    if not name:
        return None
    if version and record["stream"] != Stream.INDEX:
        return page_address("", "release", name, version) or page_address("", "project", name)
    return page_address("", "project", name)


def _identity(kind: str, name: str) -> str:
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'pypi-assets/{kind}/{name}')}"


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    shown = inert_line(text[: 2 * _LONGEST_TEXT])
    ElementTree.SubElement(parent, name).text = shown[:_LONGEST_TEXT].encode(errors="replace").decode()


def day_of(seconds: int) -> str:
    """The day in UTC of a time."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _operation(path: str, handler: Any, summary: str, parameters: type[Parameters]) -> Operation:
    return Operation(
        path=path,
        handler=handler,
        summary=summary,
        description=(
            f"At most {MOST_ENTRIES} entries, the newest first. It looks back over a bounded part of the journal; the"
            " subtitle has the serials."
        ),
        parameters=parameters,
        media_types=(ATOM,),
        at_serial=False,
    )


PROJECT_FEED = _operation(
    "/v1/projects/{project}/changes.atom",
    _of_project,
    "What changed of a project's files, as Atom",
    ProjectFeedParameters,
)
MODULE_FEED = _operation(
    "/v1/modules/{module}/changes.atom",
    _of_module,
    "Which files have a module, or lost it, as they are read, as Atom",
    ModuleFeedParameters,
)
OPERATIONS = (PROJECT_FEED, MODULE_FEED)
