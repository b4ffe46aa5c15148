"""A lease has one holder at a time, for as long as the holder lives."""

import subprocess
from dataclasses import replace

import pytest
from sqlalchemy import insert, select

from pypi_assets.catalog.coordination.leases import (
    ABANDONED_AFTER_S,
    Deadlines,
    LeaseTakenError,
    deletion_deadlines,
    lease,
    renewing,
)
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import leases
from pypi_assets_tests.forked import ForkedProgram


def test_lease_has_one_holder_and_is_released(catalog: Catalog):
    with lease(catalog, "modules"):
        with pytest.raises(LeaseTakenError, match="modules"), lease(catalog, "modules"):
            pass
        with lease(catalog, "depgraph"):
            pass
    with lease(catalog, "modules"):
        pass


def test_expired_lease_goes_to_the_next_holder(catalog: Catalog):
    now = 100.0
    timed = replace(catalog, clock=lambda: now)
    with lease(timed, "modules", ttl_s=10) as held:
        now = 109.0
        held.renew()
        now = 118.0
        with pytest.raises(LeaseTakenError), lease(timed, "modules"):
            pass
        now = 120.0
        with lease(timed, "modules", ttl_s=10):
            with pytest.raises(LeaseTakenError):
                held.renew()
            now = 125.0
    with lease(timed, "modules"):
        pass


def test_lease_of_killed_process_is_free_at_once(catalog: Catalog):
    text = (
        "import sys; from pypi_assets.catalog.database import open_catalog;"
        " from pypi_assets.catalog.coordination.leases import lease;"
        " held = lease(open_catalog(sys.argv[1]), 'modules', 600); held.__enter__(); print('held', flush=True); input()"
    )
    url = catalog.engine.url.render_as_string(hide_password=False)
    with ForkedProgram(text, url, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(LeaseTakenError), lease(catalog, "modules"):
            pass
        process.kill()
    with lease(catalog, "modules"):
        pass


def test_progress_report_renews_the_lease(catalog: Catalog):
    now = 100.0
    timed = replace(catalog, clock=lambda: now)
    reported: list[int] = []
    with lease(timed, "modules", ttl_s=10) as held:
        report = renewing(held, reported.append)
        for now in range(101, 150):
            report(int(now))
        with pytest.raises(LeaseTakenError), lease(timed, "modules"):
            pass
        now = 160.0
        with lease(timed, "modules"), pytest.raises(LeaseTakenError):
            report(0)
    assert reported == list(range(101, 150))


@pytest.mark.parametrize("dry_run", [False, True])
def test_deletion_deadlines_respect_the_oldest_lease(catalog: Catalog, *, dry_run: bool) -> None:
    now = catalog.clock()
    late = replace(catalog, clock=lambda: now)
    assert deletion_deadlines(late, 60.0) == Deadlines(now - 60.0, now - ABANDONED_AFTER_S)
    oldest = now - 2 * ABANDONED_AFTER_S
    rows = [
        {"name": "held", "holder": "a", "taken_at": oldest, "expires_at": now + 1},
        {"name": "expired", "holder": "b", "taken_at": now - 9 * ABANDONED_AFTER_S, "expires_at": now},
    ]
    with catalog.write() as connection:
        connection.execute(insert(leases), rows)
    assert deletion_deadlines(late, 60.0, dry_run=dry_run) == Deadlines(oldest, oldest)
    with catalog.read() as connection:
        left = set(connection.scalars(select(leases.c.name)))
    assert left == ({"held", "expired"} if dry_run else {"held"})
