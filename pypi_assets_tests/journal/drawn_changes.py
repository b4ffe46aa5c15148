"""Draws changes of a small catalog: files, yanks, reads and events at random serials, in two sealed ranges."""

import random
from collections import defaultdict

from sqlalchemy import insert, select, update

from pypi_assets.catalog.tables import catalog_state, events, projects
from pypi_assets.distributions.record import START_UP_CODE, DistributionKind, DistributionRecord
from pypi_assets_tests.journal.model_journal import seal_complete
from pypi_assets_tests.small_catalog import SmallCatalog

FIRST = 3
NAMES = ("one", "Two", "thrée")
VERSIONS = ("1.0", "1.9", "1.10", "2.0rc1", "odd")
MODULES = (("shared",), ("shared", "own"), ("own", "own.sub"), ("third", "shared.sub"), ("ö", "ü.a"), None)
BROKEN = ("broken\udc80", "own")
"""A name with an unpaired surrogate, which the readers of today never return."""
REQUIREMENTS = ((), ("base",), ("base", "more>=2"))


def draw_changes(small: SmallCatalog, draw: random.Random, end: int) -> dict[int, list[tuple[str, str]]]:
    """Add, remove, show again, yank and read files at drawn serials up to `end`, half of which have an event.

    Return the files that were added at each serial and read, as project and name.
    """
    added: dict[int, list[tuple[str, str]]] = defaultdict(list)
    live: list[str] = []
    gone: list[str] = []
    yanked: list[str] = []
    unread: list[tuple[int, str]] = []
    for serial in range(FIRST, end):
        changed = set[str]()  # a file changes once at a serial
        removed, new = list[str](), list[str]()
        for number in range(draw.choice((1, 1, 1, 2, 3))):
            what = draw.random()
            quiet = [name for name in live if name not in changed]
            if what < 0.15 and quiet:
                removed.append(draw.choice(quiet))
                live.remove(removed[-1])
                small.remove(serial, removed[-1])
            elif what < 0.25 and gone:
                new.append(gone.pop(draw.randrange(len(gone))))
                small.show_again(serial, new[-1])
            elif what < 0.35 and quiet:
                name = draw.choice(quiet)
                changed.add(name)
                if name in yanked:
                    yanked.remove(name)
                    small.unyank(serial, name)
                else:
                    yanked.append(name)
                    small.yank(serial, name)
            else:
                project, version = draw.choice(NAMES), draw.choice(VERSIONS)
                name = f"{project}-{version}-{serial}.{number}.tar.gz"
                modules = draw.choice((*MODULES, None, BROKEN))
                small.add(
                    serial,
                    project,
                    version,
                    name,
                    modules=modules,
                    requires_dist=None if modules is None else draw.choice(REQUIREMENTS),
                    requires_python=draw.choice((None, ">=3.9")),
                )
                if modules is None:
                    if draw.random() < 0.7:
                        unread.append((serial, name))
                    continue
                new.append(name)
                added[serial].append((project, name))
                if modules != BROKEN and draw.random() < 0.5:
                    small.store([_drawn_record(draw, name, modules)])
        if draw.random() < 0.5:
            _add_event(small, draw, serial)
        live += new
        gone += removed
    with small.catalog.write() as connection:
        connection.execute(update(catalog_state).values(events_through=end))
    small.complete(end // 2)
    seal_complete(small.catalog)
    for number, (serial, name) in enumerate(unread):  # logged after the sealed range, all at one serial
        logged = small.read(name, (f"late{number % 5}",), ("base",))
        if number % 2 == 0 and serial < logged:  # the file also becomes live at this serial, where it has one content
            small.remove(logged, name)
            small.show_again(logged, name)
    small.complete(end)
    seal_complete(small.catalog)
    return added


def _drawn_record(draw: random.Random, filename: str, modules: tuple[str, ...]) -> DistributionRecord:
    """Return a record with details, which other files of the release can share."""
    return DistributionRecord(
        filename,
        DistributionKind.SDIST,
        None,
        None,
        metadata_version=draw.choice((None, "2.1")),
        summary=draw.choice((None, 'a "summary"', "\x7f\x1f\u2028")),
        requires_python=draw.choice((None, ">=3.10")),
        requires_dist=draw.choice((None, *REQUIREMENTS)),
        provides_extra=draw.choice(((), ("extra",))),
        entry_points=draw.choice((None, {}, {"console_scripts": {"run": "one:main"}, "other": {"b": "c"}})),
        modules=draw.choice((None, modules)),
        modules_by=draw.choice((None, "archive")),
        stubs=draw.choice(((), ("own",))),
        left_out=draw.choice((0, 2)),
        license=draw.choice((None, "MIT")),
        license_classifiers=draw.choice(((), ("License :: OSI Approved",))),
        project_urls=draw.choice(((), ("Homepage, https://example.org",))),
        import_names=draw.choice((None, (), ("own",))),
        notes=draw.choice(((), ("odd",), (f"{START_UP_CODE} demo.pth",))),
    )


def _add_event(small: SmallCatalog, draw: random.Random, serial: int) -> None:
    """Store an event of a drawn project, which need not be the project that changed."""
    with small.catalog.write() as connection:
        project = draw.choice(connection.execute(select(projects.c.id, projects.c.name).order_by(projects.c.id)).all())
        row = {"serial": serial, "project_id": project.id, "name": project.name, "timestamp": 1_772_000_000 + serial}
        action = draw.choice((f"add source file {serial}.tar.gz", "new release", "yank release", "unheard of"))
        version = draw.choice((None, "1.0"))
        connection.execute(insert(events).values(**row, version=version, action=action, kind="-"))
