"""Files that Python versions would read differently if the reader relied on the standard library.

`ODD_FILES` gives name, filename and content of each. Their content does not depend on the Python that builds them.
"""

from collections.abc import Iterator, Mapping

from pypi_assets_tests.builders import Content, core_metadata, tar_bytes, zip_bytes

NEW = {
    "ZWJ": "\u200d",
    "middle dot": "\u30fb",
    "Cyrillic of 15.0": "\U0001e030",
    "Kawi digit of 15.0": "\U00011f50",
    "CJK of 15.0": "\U00031350",
    "CJK of 15.1": "\U0002ebf0",
    "Garay of 16.0": "\U00010d50",
    "Sidetic of 17.0": "\U00010940",
    "no character": "\U0003fffe",
}
"""Characters that were added, or changed their properties, after Unicode 14.0."""
OLD = {"Arabic digit": "\u0661", "superscript": "\xb2", "Kelvin": "\u212a", "long s": "\u017f", "dotted I": "\u0130"}
HEADERS = {
    "a first line that goes on": " x\nName: demo\nVersion: 1.0\n",
    "an envelope": "From x\nName: demo\nVersion: 1.0\n",
    "an envelope in the middle": "Name: demo\nFrom x\n y\nVersion: 1.0\n",
    "an envelope at the end": "Name: demo\nVersion: 1.0\nFrom x\n",
    "no name": "Name: demo\n: x\n y\nVersion: 1.0\n",
    "no separator": "Name: demo\nVersion: 1.0\nnothing\nRequires-Dist: a\n",
    "carriage returns": "Name: demo\rVersion: 1.0\rSummary: a\r b\r\rRequires-Dist: a\r",
    "odd line ends": "Name: demo\nVersion: 1.0\nSummary: a\x0bb\x85c\u2028d\x1ce\n",
    "blanks": "Name:\x0b demo\t\nVersion : 1.0\nSummary:\n \n  a\n\tb\n",
    "encoded words": "Name: demo\nVersion: 1.0\nSummary: =?utf-8?q?=C3=A9?=\nLicense: =?x?\n",
}
REQUIREMENTS = (
    *(f"a{char}" for char in (*NEW.values(), *OLD.values())),
    *(f"a ; os_name == '{char}'" for char in NEW.values()),
    "a ; os_name == '\\x'",
    "a ; os_name == '\\N{SNOWMAN}'",
    "a ; os_name == '\\'",
    "a @ https://example.org/\u200d\\N",
    f"a ; {'(' * 300}os_name == 'x'{')' * 300}",
    "a\u2028>=1",
    "a>=\u0661",
)
SCRIPTS = {
    "quotes in f-strings": "x = f'{'a'}'",
    "backslashes in f-strings": "x = f'{\"\\n\"}'",
    "comments in f-strings": "x = f'''{a # b\n}'''",
    "f-strings": "x = f'a{{{NAME}}}' 'b' f\"{NAME!s}{NAME!r:>{3}}{NAME=}\"; NAME = f'{NAME}' if 0 else 'demo'",
    "generators in f-strings": "x = f'{a for a in b}'",
    "a format with braces": "x = f'{a:{{}}}'",
    "an empty format": "x = f'{NAME:}'",
    "template strings": "x = t'a'",
    "raw template strings": "x = rt'a'",
    "type aliases": "type X = int",
    "type parameters": "def f[T](x: T): pass",
    "type parameters of classes": "class A[T = int]: pass",
    "exceptions without parentheses": "try:\n    pass\nexcept A, B:\n    pass",
    "exception groups": "try:\n    pass\nexcept* A:\n    pass",
    "unpacked subscripts": "x = a[*b]",
    "unpacked comprehensions": "x = [*a for a in b]",
    "lazy imports": "lazy import x",
    "inequality of old": "x = 1 <> 2",
    "numbers before keywords": "x = 1if 1else 2",
    "numbers before letters": "x = 1a",
    "an int of 1,000 digits": f"x = {'9' * 1000}",
    "an int of 5,000 digits": f"x = {'9' * 5000}",
    "a hexadecimal int of 5,000 digits": f"x = 0x{'f' * 5000}",
    "a line that begins with its continuation": "if 1:\n\\\n    x = 1",
    "a continuation at the end": "x = 1\\",
    "form feeds": "\x0cx = 1\nif x:\n \x0c  y = 1\n    y = 2",
    "vertical tabs": "x\x0b= 1",
    "a NUL": "x = 1\0",
    "a Control-Z": "x = 1\x1a",
    "tabs and blanks": "if 1:\n\tx = 1\n        y = 1",
    "odd escapes": "x = '\\d\\8\\400\\777'",
    "named characters": "NAME = '\\N{SNOWMAN}'",
    "a new name of a character": "NAME = '\\N{CYRILLIC MODIFIER LETTER SMALL A}'",
    "an alias of a character": "NAME = '\\N{LINE FEED}'",
    "a sequence with a name": "NAME = '\\N{LATIN SMALL LETTER I WITH MACRON AND GRAVE}'",
    "surrogates": "NAME = '\\ud800'",
    "returns": "return",
    "assignments to __debug__": "__debug__ = 1\nf(__debug__=1)",
    "future": "from __future__ import barry_as_FLUFL\nx = 1 <> 2",
    "compared": "x = 1 is 1 and () is ()",
    "called strings": "x = 'a' (1)",
    "walrus": "x = (y := 'a', [z := 1, 2])",
    "methods of text": "NAME = '\u0130\xdf\U00010d50'.lower() + 'a'.title() + '\u01c6'.upper() + ' a '.strip()",
    "formats": "NAME = '%(\u0661)s{}' % {'\u0661': 'a'} + '{\u0661}{0}'.format('a')",
    **{f"names: {name}": f"a{char} = 1" for name, char in NEW.items()},
    **{f"texts: {name}": f"NAME = 'a{char}'" for name, char in NEW.items()},
    **{f"normalized: {name}": f"{char}x = 1" for name, char in OLD.items()},
    **{
        f"{count} {name}": start.format(middle * count, end * count)
        for count in (55, 110, 190, 390, 950, 5000)
        for name, start, middle, end in (
            ("parentheses", "x = {}1{}", "(", ")"),
            ("braces", "x = {}1{}", "{1:", "}"),
            ("calls in calls", "x = {}1{}", "f(a=", ")"),
            ("calls of calls", "x = a{}{}", "()", ""),
            ("attributes", "x = a{}{}", ".a", ""),
            ("sums", "x = ''{}{}", " + 'a'", ""),
            ("signs", "x = {}1{}", "-", ""),
            ("powers", "x = {}1{}", "1**", ""),
            ("choices", "x = {}1{}", "a if b else ", ""),
            ("lambdas", "x = {}1{}", "lambda a, b: ", ""),
            ("elifs", "if a: pass\n{}{}", "elif a: pass\n", ""),
            ("lines", "{}{}", "x = 'a'\n", ""),
        )
    },
    **{
        f"{count} {name}": "\n".join(
            [*(f"{' ' * depth}{line}" for depth in range(count)), f"{' ' * count}x = 1", *ends]
        )
        for count in (40, 98, 120)
        for name, line, ends in (
            ("ifs", "if a:", []),
            ("functions", "def f():", []),
            ("loops", "for a in b:", []),
            ("tries", "try:", [f"{' ' * depth}finally: pass" for depth in reversed(range(count))]),
        )
    },
    "functions that call each other": "\n".join(
        [f"def f{number}(x):\n    return f{number + 1}([{'[' * 30}x{']' * 30}])" for number in range(20)] + ["f0(1)"]
    ),
}
COOKIES = ("utf-8", "latin-1", "cp1251", "rot13", "unicode_escape", "utf-7", "idna", "cp65001", "mbcs", "gbk", "none")
PYPROJECTS = {
    **{f"{count} arrays": f"a = {'[' * count}{']' * count}" for count in (90, 110, 350, 450, 5000)},
    **{f"{count} tables": f"a = {'{a=' * count}1{'}' * count}" for count in (90, 110, 350, 450)},
    **{f"{count} keys": f"{'a.' * count}a = 1" for count in (90, 110, 900, 1100)},
    "broken": "a = [\n1, 2\n",
    "a broken number": "a = 1__0",
    "an int of 5,000 digits": f"a = {'9' * 5000}",
    "a large hexadecimal int": f"a = 0x{'f' * 500}",
    "odd dates": "a = 2024-02-30",
    "names": "[project]\nname = 'demo\u200d\U00010d50'\nversion = '1'\n[project.scripts]\n'\u0130x' = 'a:b'",
}
SETUP_CFGS = {
    "capitals": "[metadata]\nN\u0130\u212aAME = x\nNAME = demo\nVERSION = 1\n[options]\npackages = find:",
    "odd lines": "[metadata]\nname = demo\x1cversion = 1\x85\n[options]\ninstall_requires =\u2028 a\n\x0bb",
}
GLOBS = ("[a-\\!]*", "*[]-!!]", "[!]-]*", "d[e-m]m[!a]", "d[[]*", "*o*", "[", "**/x", "d?mo", "[z-a]*", "de[^m]o")


def wheel(files: Mapping[str, Content], metadata: Content) -> bytes:
    info = "demo-1.0.dist-info"
    return zip_bytes({**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": "Wheel-Version: 1.0\n"})


def sdist(files: Mapping[str, Content]) -> bytes:
    modules = {"demo/__init__.py": "", "demo/part.py": "", "src/dxmo/__init__.py": ""}
    return tar_bytes({f"demo-1.0/{name}": content for name, content in {**modules, **files}.items()})


def script(statements: str, cookie: str = "") -> bytes:
    start = f"{cookie}from setuptools import setup\nNAME = 'demo'\n"
    return f"{start}{statements}\nsetup(name=NAME, packages=[NAME, 'demo'])\n".encode()


def odd_files() -> Iterator[tuple[str, str, bytes]]:
    plain = core_metadata("demo", "1.0")
    any_wheel = "demo-1.0-py3-none-any.whl"
    for name, char in (NEW | OLD).items():
        places = (
            f"a{char}b.py",
            f"{char}.py",
            f"p{char}/x.py",
            f"s{char}-stubs/x.pyi",
            f"x{char}.cpython-311.so",
            f"{char}.pth",
        )
        yield f"modules: {name}", any_wheel, wheel(dict.fromkeys(places, ""), plain)
        metadata = f"Metadata-Version: 2.1\nName: demo{char}\nVersion: 1.0{char}\nSummary: a{char}b \nKey{char}: x\n"
        more = f"Provides-Extra: A{char}\nDynamic: A{char}\nProject-URL: A{char}, https://a\nHome-page: https://a\n"
        yield f"metadata: {name}", any_wheel, wheel({"demo.py": ""}, metadata + more)
        both = {f"A{char}.py": "", f"a{char}.py": "", f"{char.upper()}x.py": "", f"{char.lower()}x.py": ""}
        yield f"cases: {name}", any_wheel, wheel(both, plain)
        for form in (
            "demo-1.0{}-py3-none-any.whl",
            "demo{}-1.0.tar.gz",
            "demo-{}.0.zip",
            "demo-1.0.w{}l",
            "demo-1.{}-py3.1.egg",
        ):
            yield f"filename {form}: {name}", form.format(char), wheel({"demo.py": ""}, plain)
        entry_points = {"demo-1.0.dist-info/entry_points.txt": f"[g{char}]\na{char} = b:c\n", "demo.py": ""}
        yield f"entry points: {name}", any_wheel, wheel(entry_points, plain)
    for name, headers in HEADERS.items():
        yield f"headers: {name}", any_wheel, wheel({"demo.py": ""}, headers)
    for requirement in REQUIREMENTS:
        lines = f"{plain.rstrip()}\nRequires-Dist: {requirement}\nRequires-Python: {requirement[1:]}\n"
        yield f"requirement: {requirement!a:.60}", any_wheel, wheel({"demo.py": ""}, lines)
    for name, statements in SCRIPTS.items():
        yield f"setup.py: {name}", "demo-1.0.tar.gz", sdist({"setup.py": script(statements)})
    for cookie in COOKIES:
        content = script("NAME = '\xe9+AGE-'", f"# coding: {cookie}\n")
        yield f"setup.py: {cookie}", "demo-1.0.tar.gz", sdist({"setup.py": content})
        yield f"setup.py: {cookie} with a wrong byte", "demo-1.0.tar.gz", sdist({"setup.py": content + b"# \xff\n"})
    for name, pyproject in PYPROJECTS.items():
        yield f"pyproject.toml: {name}", "demo-1.0.tar.gz", sdist({"pyproject.toml": pyproject})
    for name, setup_cfg in SETUP_CFGS.items():
        yield f"setup.cfg: {name}", "demo-1.0.tar.gz", sdist({"setup.cfg": setup_cfg, "setup.py": "setup()"})
    for glob in GLOBS:
        for settings in (
            f"[tool.setuptools.packages.find]\ninclude = ['{glob}', '*.{glob}']\nwhere = ['.', 'src']",
            f"[build-system]\nbuild-backend = 'hatchling.build'\n[tool.hatch.build]\ninclude = ['{glob}']",
        ):
            yield f"pattern {glob} in {settings[:20]!a}", "demo-1.0.tar.gz", sdist({"pyproject.toml": settings})


ODD_FILES = tuple(odd_files())
