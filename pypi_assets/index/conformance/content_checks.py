"""Checks of what an index says: lists, pages, files, events and serials."""

from packaging.utils import canonicalize_name

from pypi_assets.index.conformance.lab import Lab, download, expect, is_gone, page_of
from pypi_assets.index.conformance.site import SiteAnswer
from pypi_assets.index.conformance.subject import Subject, either, expect_exact, script
from pypi_assets.index.errors import ContentError
from pypi_assets.index.protocol import PackageIndex


class ContentChecks(Subject):
    """The index says what its server has, at each step of a history."""

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
            expect_exact(lab, reading)
            for since in range(0, reading.last_serial, 3):
                rest = events_of(index, since, reading.last_serial)
                wanted = [event for event in reading.events if event.serial > since]
                expect(rest == wanted, f"the changelog since {since} differs from the end of the whole changelog")

    def test_pages_show_the_files(self) -> None:
        """A page has the files of its project, and their URLs lead to their bytes."""
        with self.lab() as lab, lab.opened() as index:
            for name, version in (("demo", "1.0"), ("demo", "1.0+local.1"), ("Demo.Pkg", "2.0rc1"), ("other", "1.0")):
                lab.world.add(name, version)
            reading = lab.read(index)
            expect_exact(lab, reading)
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
            lab.site.trouble = lambda _: SiteAnswer(b"other bytes", "application/octet-stream")
            answer = either(lambda: download(index, shown))
            expect(isinstance(answer, ContentError), "a download of other bytes is no ContentError")

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
            expect_exact(lab, lab.read(index))
            lab.world.remove_project("other")
            reading = lab.read(index)
            expect("other" not in reading.listed, "a removed project is still on the list")
            expect(is_gone(index, "other"), "a removed project still has a page")
            expect_exact(lab, reading)
            lab.world.add("other", "2.0")
            expect_exact(lab, lab.read(index))

    def test_serials_ascend(self) -> None:
        """Serials of events ascend, the last serial never falls, and no page is ahead of it."""
        with self.lab() as lab, lab.opened() as index:
            last = index.last_serial()
            expect(last == 0, f"an empty index has the last serial {last}")
            for _ in script(lab.world):
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
            for _ in script(lab.world):
                with lab.opened() as index:
                    events = lab.read(index).events
                    expect(events[: len(known)] == known, "the changelog has changed events that it gave before")
                    expect(tuple(events_of(index, 0, index.last_serial())) == events, "a second request differs")
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
            for _ in script(lab.world):
                expect_exact(lab, lab.read(index))

    def _listed(self, lab: Lab, index: PackageIndex) -> list[str]:
        lab.settle(index)
        last = index.last_serial()
        with index.iter_listing() as (serial, projects):
            names = [canonicalize_name(project.name or "") for project in projects]
        expect(serial is None or serial <= last, f"the list has serial {serial}, and the index {last}")
        return sorted(names)


def events_of(index: PackageIndex, since: int, until: int) -> list[object]:
    return [event for page in index.changelog(since, until) for event in page]
