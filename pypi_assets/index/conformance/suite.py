"""The checks that every kind of index must pass."""

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from packaging.utils import canonicalize_name

from pypi_assets.index.conformance.lab import (
    LOGIN,
    PASSWORD,
    USER,
    Lab,
    LabClock,
    Reading,
    download,
    expect,
    folded,
    is_gone,
    page_of,
)
from pypi_assets.index.conformance.site import Answer, Answers, Request, serving
from pypi_assets.index.conformance.world import World
from pypi_assets.index.errors import ContentError, LoginError, PackageIndexError, RefusedError, TransientError
from pypi_assets.index.kinds import IndexKind
from pypi_assets.index.protocol import PackageIndex

_RETRY_AFTER_S = 30
_LONG_RETRY_AFTER_S = 100_000
_STEPS = 12
_MOST_CUTS = 8


class IndexConformance:
    """Checks a kind of index. Subclass it in a test module, under a name that begins with `Test`:

        class TestShelf(IndexConformance):
            kind = KIND
            index_path = "/shelf/"

            def answer(self, world, request):
                ...  # the answer of the server if `world` is its content, or None for a 404

    Each check begins with an empty world and a new server on loopback. No check waits: the clock is simulated.
    """

    kind: IndexKind
    index_path = "/simple/"
    changelog_path = "/pypi"
    has_hashes = True
    """Whether pages have the SHA-256 of each file."""
    has_yanks = True
    """Whether pages show yanked files with their reasons."""
    can_overwrite = True
    """Whether the index may replace the bytes of a file."""

    def answer(self, world: World, request: Request) -> Answer | None:
        """Return the answer of the server if `world` is its content, or None for a 404."""
        raise NotImplementedError

    @contextmanager
    def new_world(self) -> Iterator[World]:
        """Yield an empty world. Override it if another program must learn of each step of the script."""
        yield World()

    @contextmanager
    def lab(self) -> Iterator[Lab]:
        """Yield an empty world with a server."""
        clock = LabClock()
        with self.new_world() as world, serving(lambda request: self.answer(world, request), clock.now) as site:
            yield Lab(self.kind, world, site, clock, self.index_path, self.changelog_path)

    def test_list_has_every_project(self) -> None:
        """The list has each project once, in any spelling of its name, and nothing else."""
        with self.lab() as lab, lab.opened() as index:
            expect(self._listed(lab, index) == [], "an empty index lists projects")
            for name in ("demo", "Demo.Pkg", "under_score"):
                lab.world.add(name, "1.0")
            listed = self._listed(lab, index)
            expect(listed == ["demo", "demo-pkg", "under-score"], f"the list has {listed}")

    def test_long_lists_and_logs_are_complete(self) -> None:
        """Answers that come in several pages are read to the end, without a gap and without repetition."""
        with self.lab() as lab, lab.opened() as index:
            for number in range(4 * lab.world.page_size + 3):
                lab.world.add(f"p{number:03}", "1.0")
            reading = lab.read(index)
            missing = lab.world.live().keys() - set(reading.listed)
            expect(not missing, f"the list lacks {sorted(missing)}")
            expect(len(reading.listed) == len(set(reading.listed)), "the list has a project twice")
            _expect_exact(lab, reading)
            for since in range(0, reading.last_serial, 3):
                rest = _events(index, since, reading.last_serial)
                wanted = [event for event in reading.events if event.serial > since]
                expect(rest == wanted, f"the changelog since {since} differs from the end of the whole changelog")

    def test_pages_show_the_files(self) -> None:
        """A page has the files of its project, and their URLs lead to their bytes."""
        with self.lab() as lab, lab.opened() as index:
            for name, version in (("demo", "1.0"), ("demo", "1.0+local.1"), ("Demo.Pkg", "2.0rc1"), ("other", "1.0")):
                lab.world.add(name, version)
            reading = lab.read(index)
            _expect_exact(lab, reading)
            for project, page in reading.pages.items():
                expect(page.project == project, f"the page of {project} names {page.project}")
                for shown in page.files:
                    file = lab.world.file(project, shown.filename)
                    expect(file, f"the page of {project} shows {shown.filename}")
                    content = file.content if file else b""
                    expect(shown.size in {None, len(content)}, f"{shown.filename} has the size {shown.size}")
                    expect(download(index, shown) == content, f"the URL of {shown.filename} leads to other bytes")

    def test_names_of_pages_may_be_spelled_in_any_way(self) -> None:
        """A page is found by each spelling of the project's name."""
        with self.lab() as lab, lab.opened() as index:
            filename = lab.world.add("Demo.Pkg", "1.0")
            lab.settle(index)
            for name in ("Demo.Pkg", "demo-pkg", "demo_pkg"):
                files = [file.filename for file in page_of(index, name).files]
                expect(files == [filename], f"the page of {name!r} has the files {files}")

    def test_hashes_are_of_the_bytes(self) -> None:
        """Each file has its SHA-256, and a download of other bytes is an error."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            [shown] = lab.read(index).pages["demo"].files
            file = lab.world.file("demo", shown.filename)
            sha256 = file.sha256 if file else None
            wanted = {sha256} if self.has_hashes else {None, sha256}
            expect(shown.sha256 in wanted, f"{shown.filename} has the SHA-256 {shown.sha256}, not {sha256}")
            if shown.sha256 is None:
                return
            lab.site.trouble = lambda _: Answer(b"other bytes", "application/octet-stream")
            expect(_error(lambda: download(index, shown), ContentError), "a download of other bytes is no ContentError")

    def test_yanks_are_shown_with_their_reasons(self) -> None:
        """A yanked file is marked with the reason, and the mark disappears when it is unyanked."""
        if not self.has_yanks:
            return
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.world.add("demo", "2.0")
            for reason in ("broken", None, "broken again"):
                lab.world.yank("demo", "1.0", reason)
                files = {file.filename: file for file in lab.read(index).pages["demo"].files}
                for filename, file in (lab.world.files("demo") or {}).items():
                    shown = files[filename]
                    found = shown.yanked_reason if shown.yanked else None
                    expect(found == file.yanked, f"{filename} is yanked for {found!r}, and not for {file.yanked!r}")

    def test_overwritten_file_has_its_new_hash(self) -> None:
        """If the bytes of a file change, its page has the new hash."""
        if not (self.can_overwrite and self.has_hashes):
            return
        with self.lab() as lab, lab.opened() as index:
            filename = lab.world.add("demo", "1.0")
            before = lab.read(index).last_serial
            lab.world.overwrite("demo", filename)
            reading = lab.read(index)
            [shown] = reading.pages["demo"].files
            file = lab.world.file("demo", filename)
            expect(file and shown.sha256 == file.sha256, f"{filename} has the hash of its former bytes")
            expect(reading.last_serial > before, "the new bytes have no event")

    def test_missing_project_is_not_on_the_index(self) -> None:
        """A project that does not exist is a NotOnIndexError, and never an empty page."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.settle(index)
            expect(is_gone(index, "missing"), "a project that does not exist has a page")

    def test_deletions_are_followed(self) -> None:
        """A removed file leaves its page, a removed project leaves the list, and both have events."""
        with self.lab() as lab, lab.opened() as index:
            first = lab.world.add("demo", "1.0")
            lab.world.add("demo", "2.0")
            lab.world.add("other", "1.0")
            lab.read(index)
            lab.world.remove_file("demo", first)
            _expect_exact(lab, lab.read(index))
            lab.world.remove_project("other")
            reading = lab.read(index)
            expect("other" not in reading.listed, "a removed project is still on the list")
            expect(is_gone(index, "other"), "a removed project still has a page")
            _expect_exact(lab, reading)
            lab.world.add("other", "2.0")
            _expect_exact(lab, lab.read(index))

    def test_serials_ascend(self) -> None:
        """Serials of events ascend, the last serial never falls, and no page is ahead of it."""
        with self.lab() as lab, lab.opened() as index:
            last = index.last_serial()
            expect(last == 0, f"an empty index has the last serial {last}")
            for _ in _script(lab.world):
                reading = lab.read(index)
                serials = [event.serial for event in reading.events]
                expect(serials == sorted(set(serials)), f"the serials of the changelog are {serials}")
                expect(reading.last_serial > last, f"the last serial is {reading.last_serial} after a change at {last}")
                last = reading.last_serial
                expect(serials[-1:] == [last], f"the last event has the serial {serials[-1:]}, and the index {last}")
                expect(index.changelog_page(last) == [], "there are events beyond the last serial")
                of_project: dict[str, int] = {canonicalize_name(event.name): event.serial for event in reading.events}
                for project, page in reading.pages.items():
                    serial = of_project.get(project)
                    expect(
                        page.last_serial == serial,
                        f"the page of {project} has serial {page.last_serial}; the project's last event has {serial}",
                    )

    def test_events_are_never_changed(self) -> None:
        """The same serial is the same event again: at a second request, in another process, and after more events."""
        with self.lab() as lab:
            known: tuple[object, ...] = ()
            for _ in _script(lab.world):
                with lab.opened() as index:
                    events = lab.read(index).events
                    expect(events[: len(known)] == known, "the changelog has changed events that it gave before")
                    expect(tuple(_events(index, 0, index.last_serial())) == events, "a second request differs")
                    known = events

    def test_unchanged_index_has_no_new_events(self) -> None:
        """Polling or asking again, with answers of 304 where the request allows them, changes nothing."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.world.add("other", "1.0")
            before = lab.read(index)
            expect(lab.read(index) == before, "a second reading of an unchanged index differs")

    def test_events_explain_pages_at_every_step(self) -> None:
        """After each step of a history, the events lead to exactly the files that pages show and the index has."""
        with self.lab() as lab, lab.opened() as index:
            for _ in _script(lab.world):
                _expect_exact(lab, lab.read(index))

    def test_unreadable_answers_are_errors(self) -> None:
        """An answer that is not the index's own is an error, and never an empty list or page."""
        for trouble in (
            Answer(b"<html><form>Log in</form></html>", "text/html"),
            Answer(b'{"cut', "application/json"),
            Answer(b"", "application/json"),
            Answer(b"[]", "application/json"),
            Answer(b"busy", "text/plain", 503),
            Answer(b"no", "text/plain", 400),
        ):
            what = f"HTTP {trouble.status} with the body {trouble.body!r}"
            for good in range(2):
                with self.lab() as lab:
                    with lab.opened() as index:
                        lab.world.add("demo", "1.0")
                        lab.world.add("other", "1.0")
                        before = lab.read(index)
                    with lab.opened() as index:
                        for _ in range(3):
                            lab.site.trouble = _after(good, trouble)
                            answer = _either(partial(lab.read, index, rounds=1))
                            if isinstance(answer, Reading):
                                expect(answer.shown() == before.shown(), f"{what} changes pages")
                    with self._healed(lab) as index:
                        expect(lab.read(index).events == before.events, f"{what} leads to events")

    def test_interrupted_runs_lose_nothing(self) -> None:
        """A run whose connection breaks at any request continues later, with the result of an uninterrupted run."""
        for cut in range(1, _MOST_CUTS + 1):
            with self.lab() as lab:
                for _ in _script(lab.world, steps=4):
                    """Take the first steps before anything is read."""
                with lab.opened() as index:
                    lab.read(index)
                for name in ("late", "later"):
                    lab.world.add(name, "1.0")
                with lab.opened() as index:
                    lab.site.trouble = _after(cut - 1, Answer(b'{"half": "of an answer"}', sent=5))
                    answer = _either(partial(lab.read, index, rounds=2))
                    if isinstance(answer, PackageIndexError):
                        expect(
                            isinstance(answer, TransientError),
                            f"a broken connection is a {type(answer).__name__}: {answer}",
                        )
                with self._healed(lab) as index:
                    _expect_exact(lab, lab.read(index))

    def test_broken_connection_is_tried_again(self) -> None:
        """A request that breaks once is sent again."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.trouble = _once(Answer(b"half of an answer", sent=3))
            answer = _either(lambda: lab.read(index))
            expect(isinstance(answer, Reading), f"one broken answer ends the run: {answer}")
            _expect_exact(lab, answer)

    def test_throttling_is_respected(self) -> None:
        """After a 429, no request is sent before the time in Retry-After."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.trouble = _once(_throttled(_RETRY_AFTER_S))
            answer = _either(lambda: lab.read(index))
            expect(isinstance(answer, Reading), f"a 429 with a short pause ends the run: {answer}")
            first, second = lab.site.received[:2]
            waited = second.at - first.at
            expect(
                waited >= _RETRY_AFTER_S, f"the next request came after {waited} s, and not after {_RETRY_AFTER_S} s"
            )
            for request in lab.site.received:
                agent = request.headers.get("user-agent", "")
                expect(
                    agent.startswith("pypi-assets/"), f"{request.path} was requested as {agent!r}, not by the client"
                )

    def test_long_throttling_is_reported(self) -> None:
        """A pause that is too long to wait for is a TransientError with that pause."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.trouble = lambda _: _throttled(_LONG_RETRY_AFTER_S)
            answer = _either(lambda: lab.read(index))
            expect(isinstance(answer, TransientError), f"a 429 with a long pause is {answer!r}")
            pause_s = answer.retry_after_s if isinstance(answer, TransientError) else None
            expect(pause_s == _LONG_RETRY_AFTER_S, f"the error has the pause {pause_s}, not {_LONG_RETRY_AFTER_S}")

    def test_missing_login_is_an_error(self) -> None:
        """Without the credentials that the index requires, requests end with a LoginError."""
        with self.lab() as lab, lab.opened() as index:
            lab.world.add("demo", "1.0")
            lab.site.login = LOGIN
            answer = _either(lambda: lab.read(index))
            expect(isinstance(answer, LoginError), f"a 401 is {answer!r}, and not a LoginError")

    def test_credentials_reach_only_the_index(self) -> None:
        """Credentials of the index's URL are sent to the index alone, and are never displayed."""
        with self.lab() as lab, serving(lambda _: None, lab.clock.now, host="localhost") as elsewhere:
            filename = lab.world.add("demo", "1.0")
            lab.site.login = LOGIN
            login = f"{USER}:{PASSWORD}@"
            with lab.opened(login=login) as index:
                reading = _either(lambda: lab.read(index))
                expect(isinstance(reading, Reading), f"the credentials of the URL are not used: {reading}")
                [file] = page_of(index, "demo").files
                expect(PASSWORD not in f"{index.index_url}{index.changelog_url}{file}", "the password is displayed")
                expect(download(index, file), f"{filename} is empty")
            lab.world.add("fresh", "1.0")
            with lab.opened(login=login) as index:
                away = Answer(status=302, headers={"Location": f"{elsewhere.url}/away/"})
                lab.site.trouble = lambda _: away
                for error in (_either(lambda: lab.read(index)), _either(lambda: index.project_page("fresh"))):
                    expect(PASSWORD not in str(error), "the password is in an error")
            for request in elsewhere.received:
                expect("authorization" not in request.headers, "the credentials were sent to another host")

    def test_threads_do_not_disturb_each_other(self) -> None:
        """Pages that several threads request at the same time belong to the requested projects."""
        names = [f"p{number}" for number in range(6)]
        with self.lab() as lab, lab.opened() as index:
            for name in names:
                lab.world.add(name, "1.0")
            together = threading.Barrier(len(names))

            def wait_for_all(_: Request) -> None:
                try:
                    together.wait(0.5)
                except threading.BrokenBarrierError:
                    """Some requests are not sent at the same time."""

            lab.site.trouble = wait_for_all
            with ThreadPoolExecutor(len(names)) as pool:
                pages = list(pool.map(lambda name: _either(lambda: page_of(index, name)), names))
            for name, page in zip(names, pages, strict=True):
                files = {file.filename for file in getattr(page, "files", ())}
                expect(files == lab.world.live()[name], f"a thread that requested {name} got {page}")

    def _listed(self, lab: Lab, index: PackageIndex) -> list[str]:
        lab.settle(index)
        last = index.last_serial()
        with index.iter_listing() as (serial, projects):
            names = [canonicalize_name(project.name or "") for project in projects]
        expect(serial is None or serial <= last, f"the list has serial {serial}, and the index {last}")
        return sorted(names)

    @contextmanager
    def _healed(self, lab: Lab) -> Iterator[PackageIndex]:
        """Yield an index that another process opens after the trouble."""
        lab.site.trouble = lambda _: None
        lab.clock.sleep(100_000)  # no pause after failures is longer
        with lab.opened() as index:
            yield index


def failures(suite: type[IndexConformance], names: Iterable[str] | None = None) -> dict[str, Exception]:
    """Run the checks of `suite` without pytest, or only those in `names`. Return the errors by the check's name.

    for name, error in failures(ShelfConformance).items():
        print(name, error)
    """
    found: dict[str, Exception] = {}
    for name in checks(suite) if names is None else names:
        try:
            getattr(suite(), name)()
        except Exception as error:  # noqa: BLE001 - an adapter can raise anything
            found[name] = error
    return found


def checks(suite: type[IndexConformance]) -> list[str]:
    """Return the names of all checks of `suite`, in order."""
    return [name for name in dir(suite) if name.startswith("test_")]


def _expect_exact(lab: Lab, reading: object) -> None:
    """Raise ConformanceError unless pages and events lead to the files of the world."""
    if not isinstance(reading, Reading):
        raise TypeError(reading)
    live, shown, told = lab.world.live(), reading.shown(), folded(reading.events)
    expect(shown == live, f"pages show {shown}, and the index has {live}")
    expect(told == live, f"events lead to {told}, and the index has {live}")


def _script(world: World, steps: int = _STEPS) -> Iterator[int]:
    """Change the world step by step: uploads, yanks, deletions, and names that return."""
    draw = random.Random(1)
    for step in range(steps):
        names = sorted(world.projects)
        name = draw.choice(["one", "Two.x", "three"])
        files = sorted(world.projects.get(name, {}))
        kind = draw.choice(["add", "add", "remove file", "remove project"])
        if kind == "remove file" and len(files) > 1:
            world.remove_file(name, files[0])
        elif kind == "remove project" and len(names) > 1 and name in names:
            world.remove_project(name)
        else:
            world.add(name, f"{step}.0")
        yield step


def _events(index: PackageIndex, since: int, until: int) -> list[object]:
    return [event for page in index.changelog(since, until) for event in page]


def _either(query: Callable[[], object]) -> object:
    """Return the result of `query`, or its error of an index. Other errors are raised."""
    try:
        return query()
    except PackageIndexError as error:
        return error


def _error(query: Callable[[], object], kind: type[RefusedError]) -> bool:
    return isinstance(_either(query), kind)


def _once(answer: Answer) -> Answers:
    return _counted(lambda number: answer if number == 1 else None)


def _after(good: int, answer: Answer) -> Answers:
    """Give `answer` to each request after the first `good` ones."""
    return _counted(lambda number: answer if number > good else None)


def _counted(answer: Callable[[int], Answer | None]) -> Answers:
    lock, count = threading.Lock(), 0

    def counted(_: Request) -> Answer | None:
        nonlocal count
        with lock:
            count += 1
            number = count
        return answer(number)

    return counted


def _throttled(seconds: int) -> Answer:
    return Answer(b"too many requests", "text/plain", 429, {"Retry-After": str(seconds)})
