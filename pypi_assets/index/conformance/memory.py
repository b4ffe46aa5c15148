"""The state of an observed index in the memory of one process, for checks. The catalog has the durable one."""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from packaging.utils import canonicalize_name

from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets.index.observing.comparison import KnownPage
from pypi_assets.index.observing.round_state import KnownList, KnownProject, Look
from pypi_assets.index.observing.shown_pages import ShownProject, Validators


@dataclass
class TransientMemory:
    """Implements `Memory` of `index/observing/round_state.py`. `now` is the clock of all pollers."""

    now: Callable[[], float]
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _known: dict[str, KnownProject] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    _events: list[ChangelogEvent] = field(default_factory=list)
    _list: KnownList = field(default_factory=KnownList)
    _has_serials: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether a change waits for confirmation."""
        return any(known.page.waiting for known in self._known.values())

    def last_serial(self) -> int:
        return len(self._events)

    def events(self, after: int, limit: int) -> list[ChangelogEvent]:
        return self._events[after : after + limit]

    def listed(self) -> tuple[int, list[ListedProject]]:
        with self._lock:
            shown = [known for known in self._known.values() if known.page.is_there or known.looked_at is None]
            return len(self._events), [ListedProject(known.project, known.serial) for known in shown]

    def known_list(self) -> KnownList:
        return self._list

    def save_list(self, projects: Iterable[ShownProject] | None, validators: Validators, now: float) -> None:
        with self._lock:
            if projects is not None:
                listed = list(projects)
                names = {canonicalize_name(project.name) for project in listed}
                self.enter(listed, now)
                self.make_due(now, [name for name in self._known if name not in names])
            self._list = KnownList(now, validators)

    def enter(self, projects: Iterable[ShownProject], now: float) -> None:
        with self._lock:
            for project in projects:
                name = canonicalize_name(project.name)
                known = self._known.get(name)
                if known is None:
                    self._known[name] = KnownProject(name, KnownPage(name), project.url)
                    self._due[name] = now
                elif project.url is not None:
                    self._known[name] = replace(known, url=project.url)

    def load(self, project: str) -> KnownProject | None:
        return self._known.get(project)

    def take_due(
        self, now: float, until: float, limit: int, *, seen_before: float, among: Collection[str] | None
    ) -> list[KnownProject]:
        with self._lock:
            taken = sorted(self._due_names(now, seen_before, among), key=lambda name: (self._due[name], name))[:limit]
            self._due.update(dict.fromkeys(taken, until))
            return [self._known[name] for name in taken]

    def make_due(self, now: float, among: Collection[str] | None) -> None:
        with self._lock:
            for name in self._known if among is None else among:
                self._due[name] = min(self._due.get(name, now), now)

    def count_due(self, now: float, *, seen_before: float, among: Collection[str] | None) -> int:
        return len(self._due_names(now, seen_before, among))

    def _due_names(self, now: float, seen_before: float, among: Collection[str] | None) -> list[str]:
        return [
            name
            for name, known in self._known.items()
            if self._due[name] <= now
            and (known.looked_at is None or known.looked_at < seen_before)
            and (among is None or name in among)
        ]

    def save(self, looks: Sequence[Look]) -> tuple[int, int]:
        with self._lock:
            before, dropped = len(self._events), 0
            for look in looks:
                if self._known[look.known.project].revision != look.known.revision:
                    dropped += 1
                    continue
                self._save(look)
            return len(self._events) - before, dropped

    def _save(self, look: Look) -> None:
        known = self._known[look.known.project]
        self._due[known.project] = look.due_at
        if look.page is None:
            failed = replace(known, revision=known.revision + 1, pause_s=look.pause_s, failures=known.failures + 1)
            self._known[known.project] = failed
            return
        for event in look.events:
            serial = len(self._events) + 1
            self._events.append(ChangelogEvent(look.page.name, event.version, int(look.at), event.action, serial))
        self._known[known.project] = KnownProject(
            known.project,
            look.page,
            known.url,
            known.revision + 1,
            len(self._events) if look.events else known.serial,
            look.validators,
            look.pause_s,
            look.at,
        )

    def note_serials(self) -> bool:
        with self._lock:
            is_new, self._has_serials = not self._has_serials, True
            return is_new
