"""The command `follow`, which follows an index within seconds, until stopped."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.contexts import opened_crawler
from pypi_assets.cli.options import command
from pypi_assets.logs import are_json
from pypi_assets.terminal import print_json_line
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.crawl.crawler import Crawler
    from pypi_assets.index.protocol import Observation

_log = logging.getLogger(__name__)


@command("follow", "--once")
@click.option("--once", is_flag=True, help="Run all due stages once, from the first crawl to the LevelDBs, and exit.")
@click.option("--begin", is_flag=True, help="First do the work of --once if there is no first crawl or dump yet.")
@click.option(
    "--now", is_flag=True, help="With --once: poll all projects of an index without serials, not only due ones."
)
def follow_command(once: bool, begin: bool, now: bool) -> None:
    """Follow the index within seconds, until stopped.

    It polls the index every PYPI_ASSETS_FOLLOW_INTERVAL_S seconds. New changes are crawled, written to the journal,
    dumped, and added to the LevelDBs at once. Other processes, such as Dagster, can do the same work at the same time.
    It needs a first crawl and a first dump; `--begin` makes them.

    It prints a line of JSON for each step. With PYPI_ASSETS_LOG_FORMAT=json, steps are log lines. Transient errors are
    retried; any other error ends the command with exit code 1.
    """
    from pypi_assets.components import declared_scopes
    from pypi_assets.following.catch_up import follow_once, is_begun
    from pypi_assets.following.follower import Builds, FollowerPace, follow
    from pypi_assets.settings import load_settings

    if now and not once:
        raise click.UsageError("--now works only with --once")
    if begin and once:
        raise click.UsageError("--once includes the work of --begin: omit one of them")
    settings = load_settings()
    declared = declared_scopes(settings)
    pace = FollowerPace(settings.follow_interval_s, settings.follow_leveldb_interval_s)
    builds = Builds(settings.leveldbs_dir, settings.leveldb_write_buffer_bytes, settings.leveldb_memory_bytes)
    if once or begin:
        rounds: list[Observation] = []
        with opened_crawler(creates=True, observed=rounds.append) as crawler:
            if once or not is_begun(crawler.catalog):
                follow_once(
                    crawler,
                    builds,
                    print_step,
                    declared,
                    everything=now,
                    dump_shards=settings.dump_shards,
                    dump_concurrency=settings.dump_concurrency,
                )
            if once and crawler.index.is_observed:
                _print_polls(crawler, rounds, settings.poll_confirm_s)
    if once:
        return
    with opened_crawler() as crawler, stop_by_signals() as stopping:
        if not follow(crawler, builds, pace, print_step, stopping, declared):
            os._exit(0)  # safe at any moment; a normal exit would wait for the threads


def _print_polls(crawler: "Crawler", rounds: Sequence["Observation"], confirm_after_s: float) -> None:
    """Print how many projects were polled, and when the next one is due: its changes are not seen before that."""
    from pypi_assets.catalog.reports.catalog_status import observed_state

    with crawler.catalog.read() as connection:
        state = observed_state(connection, crawler.catalog.clock(), confirm_after_s)
    polled = sum(one.looked_at for one in rounds)
    counts = {"polled": polled, "projects": state.projects, "unconfirmed": state.unconfirmed}
    print_step({"step": "poll", **counts, "next_due_at": utc_text(state.next_due_at)})


def print_step(step: Mapping[str, object]) -> None:
    """Print a step with its time as a line of JSON, or log it if logs are JSON."""
    if not are_json():
        print_json_line({"at": utc_text(time.time()), **step})
        return
    level = logging.WARNING if step.get("step") == "error" else logging.INFO
    _log.log(level, " ".join(str(step[name]) for name in ("step", "range", "error") if name in step), extra=dict(step))


@contextmanager
def stop_by_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set. The second signal ends the process, which is safe at any moment."""
    stopping = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
