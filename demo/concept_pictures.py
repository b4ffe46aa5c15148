"""Draw the pictures of docs/concepts.md into docs/pictures/: `python demo/concept_pictures.py`."""

from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
INK, SOFT, PAPER, BLUE, GREEN, AMBER, RED = "#1f2937", "#6b7280", "#f8fafc", "#c7d2fe", "#bbf7d0", "#fde68a", "#fecaca"


class Picture:
    """An SVG of boxes, arrows and words. It has its own background, so it is readable on any page."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, text: str, fill: str = BLUE, note: str = "") -> None:
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{INK}"/>'
        )
        middle = y + height / 2 + 5 - (9 if note else 0)
        self.text(x + width / 2, middle, text, anchor="middle", weight="600")
        if note:
            self.text(x + width / 2, middle + 18, note, anchor="middle", size=12, fill=SOFT)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        size: int = 14,
        fill: str = INK,
        weight: str = "400",
    ) -> None:
        self.parts.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{fill}">'
            f"{escape(text)}</text>"
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, dash: str = "", color: str = INK, width: float = 1.5
    ) -> None:
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{color}" stroke-width="{width}"{dashes}/>')

    def arrow(self, *points: tuple[float, float], dash: str = "") -> None:
        path = "M" + "L".join(f"{x} {y}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<path d="{path}" stroke="{INK}" stroke-width="1.5" fill="none" marker-end="url(#tip)"{dashes}/>'
        )

    def write(self, path: Path) -> Path:
        """Write the picture as an SVG file, and return its path."""
        tip = (
            '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker>'
        )
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'font-family="system-ui, sans-serif"><title>{escape(self.title)}</title><defs>{tip}</defs>'
            f'<rect width="{self.width}" height="{self.height}" rx="10" fill="{PAPER}"/>{"".join(self.parts)}</svg>\n'
        )
        path.write_text(svg, encoding="utf-8")
        return path


def flow() -> Picture:
    picture = Picture(820, 250, "Data flows from the index to the catalog, the dumps and the LevelDBs")
    picture.box(20, 90, 130, 56, "index", GREEN, "pages, changelog")
    picture.box(220, 90, 130, 56, "catalog", BLUE, "a database")
    picture.box(420, 90, 130, 56, "dumps", BLUE, "gzipped JSON")
    picture.box(620, 90, 170, 56, "LevelDB versions", BLUE, "five datasets")
    for x in (150, 350, 550):
        picture.arrow((x, 118), (x + 68, 118))
    picture.text(185, 108, "crawl", anchor="middle", size=12, fill=SOFT)
    picture.box(600, 190, 200, 40, "newest answers", AMBER)
    picture.arrow((705, 146), (705, 188))
    picture.box(330, 190, 200, 40, "earlier answers", AMBER)
    picture.arrow((300, 146), (300, 210), (328, 210))
    picture.box(420, 20, 130, 44, "journal", BLUE)
    picture.arrow((285, 90), (285, 42), (418, 42))
    picture.box(590, 20, 215, 44, "mirrors, Kafka, webhooks", GREEN)
    picture.arrow((550, 42), (588, 42))
    return picture


def ranges() -> Picture:
    picture = Picture(820, 290, "Ranges of serials, the dumps of them, and a LevelDB version")

    def at(serial: float) -> float:
        return 130 + (serial - 1000) * 1.9

    picture.text(16, 40, "serials")
    picture.arrow((at(1000), 36), (at(1345), 36))
    for serial in (1000, 1100, 1180, 1240, 1320):
        picture.line(at(serial), 30, at(serial), 42)
        picture.text(at(serial), 22, str(serial), anchor="middle", size=12, fill=SOFT)
    picture.text(16, 82, "ledger")
    picture.box(at(1000), 60, at(1100) - at(1000), 44, "0-1100", GREEN, "complete: first crawl")
    picture.box(at(1100), 60, at(1180) - at(1100), 44, "1100-1180", GREEN, "complete")
    picture.box(at(1180), 60, at(1240) - at(1180), 44, "1180-1240", GREEN, "complete")
    picture.box(at(1240), 60, at(1320) - at(1240), 44, "1240-1320", AMBER, "running")
    picture.line(at(1240), 50, at(1240), 275, dash="5 4", color="#b91c1c")
    picture.text(at(1240) + 6, 272, "complete serial 1240", size=12, fill="#b91c1c")
    picture.text(16, 152, "dumps")
    picture.box(at(1000), 130, at(1100) - at(1000), 44, "full 0-1100")
    picture.box(at(1100), 130, at(1180) - at(1100), 44, "1100-1180", BLUE, "incremental")
    picture.box(at(1180), 130, at(1240) - at(1180), 44, "1180-1240", BLUE, "incremental")
    picture.text(16, 222, "LevelDB")
    picture.box(at(1000), 200, at(1180) - at(1000), 44, "version 7 of modules, at serial 1180")
    picture.text(at(1180) + 8, 227, "next: version 8", size=12, fill=SOFT)
    return picture


def life() -> Picture:
    picture = Picture(820, 210, "The life of a range, from its allocation to a compacted dump")
    steps = (("allocated", "a start of its own"), ("running", "visits, reads"), ("complete", "answers are exact"))
    for number, (name, note) in enumerate(steps):
        picture.box(20 + number * 160, 30, 120, 54, name, GREEN if name == "complete" else BLUE, note)
    picture.box(500, 30, 120, 54, "dumped", BLUE, "now sealed")
    picture.box(660, 30, 140, 54, "compacted", BLUE, "joined with others")
    for x in (140, 300, 460, 620):
        picture.arrow((x, 57), (x + 38, 57))
    picture.box(180, 140, 120, 50, "interrupted", AMBER, "or failed")
    picture.arrow((225, 84), (225, 138))
    picture.arrow((258, 140), (258, 86))
    picture.text(268, 116, "run again: it continues", size=12, fill=SOFT)
    picture.text(500, 116, "Findings about a sealed range", size=12, fill=SOFT)
    picture.text(500, 134, "go into a later dump.", size=12, fill=SOFT)
    return picture


def tables() -> Picture:
    picture = Picture(820, 260, "What the catalog observes, and what it computes from that")
    columns = (
        (20, "observed", GREEN, ("events", "page snapshots, visits", "records of files")),
        (300, "computed", BLUE, ("live and yanked intervals", "changes with causes", "releases, projects")),
        (580, "work", AMBER, ("ledger of ranges", "queues of visits, reads", "dumps, LevelDB versions")),
    )
    for x, title, fill, rows in columns:
        picture.text(x + 110, 34, title, anchor="middle", weight="600")
        for number, row in enumerate(rows):
            picture.box(x, 50 + number * 56, 220, 42, row, fill)
    picture.arrow((240, 128), (298, 128))
    picture.text(410, 236, "A pure function of all that was observed:", anchor="middle", size=12, fill=SOFT)
    picture.text(410, 252, "the order of crawls does not matter.", anchor="middle", size=12, fill=SOFT)
    return picture


def page_and_events() -> Picture:
    picture = Picture(820, 250, "A page of serial 125 is compared with the events up to 125")

    def at(serial: float) -> float:
        return 110 + (serial - 95) * 19

    picture.text(16, 40, "events")
    picture.arrow((at(96), 36), (at(131), 36))
    for serial, text in ((100, "add file"), (110, "yank release"), (125, "remove file")):
        picture.line(at(serial), 29, at(serial), 43, width=3)
        picture.text(at(serial), 22, f"{serial}: {text}", anchor="middle", size=12)
    picture.text(16, 92, "range")
    picture.box(at(96), 68, at(120) - at(96), 40, "96-120", GREEN)
    picture.box(at(120), 68, at(125) - at(120), 40, "121-125", AMBER)
    picture.text(at(125) + 8, 86, "stored first, since the", size=12, fill=SOFT)
    picture.text(at(125) + 8, 102, "page is of serial 125", size=12, fill=SOFT)
    picture.text(16, 156, "page")
    picture.box(at(118), 132, at(125) - at(118), 40, "no files", BLUE)
    picture.text(at(118) - 8, 156, "the page, of serial 125", anchor="end", size=12, fill=SOFT)
    picture.text(16, 218, "result")
    picture.box(at(100), 196, at(125) - at(100), 22, "", GREEN)
    picture.text(at(112.5), 212, "live 100 to 125", anchor="middle", size=12, weight="600")
    picture.box(at(110), 220, at(125) - at(110), 20, "", RED)
    picture.text(at(117.5), 235, "yanked from 110", anchor="middle", size=12, weight="600")
    return picture


def draw_all(folder: Path) -> list[Path]:
    """Write all pictures into the folder, and return their paths."""
    drawn = {
        "flow": flow(),
        "ranges": ranges(),
        "range-life": life(),
        "tables": tables(),
        "page-and-events": page_and_events(),
    }
    folder.mkdir(exist_ok=True)
    return [picture.write(folder / f"{name}.svg") for name, picture in drawn.items()]


if __name__ == "__main__":
    draw_all(FOLDER)
