"""Work out what meson-python puts into a wheel: the files that meson.build installs, if their names are literal."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pypi_assets.distributions.backends.meson_values import (
    MAX_CONDITION,
    MAX_NAMES,
    MesonReader,
    Token,
    Truth,
    Value,
    joined_values,
    read_options,
    truth,
)
from pypi_assets.distributions.members import by_folder, paths_of
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Patterns, without
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, moved

MAX_STEPS = 1_000_000
"""The maximum number of tokens and texts that are visited, which takes about two seconds.

The largest projects need a fifth of it.
"""
MAX_LOOPS = 10
"""The maximum nesting of loops."""
MAX_FOLDER_PARTS = 100
MAX_FOLDER_LENGTH = 1000
"""A longer path is not a real folder and would be repeated for each of its files."""
_TOKEN = re.compile(
    r"""\#[^\n]*|'''(?P<long>.*?)(?:'''|\Z)|'(?P<text>(?:[^'\\\n]++|\\.)*+)(?:'|(?=\n)|\\?\Z)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>\+=|==|!=|[^\s])|(?P<line>\n)""",
    re.DOTALL,
)
_WRITING = frozenset({"configure_file", "custom_target", "vcs_tag", "copyfile"})
"""Calls whose outputs are installed if they have an install_dir."""
_LIBRARIES = frozenset({"shared_library", "shared_module"})
_INSTALLING = (
    frozenset({"install_sources", "extension_module", "install_subdir", "install_data"}) | _WRITING | _LIBRARIES
)
_EXCLUDING = ("exclude_files", "exclude_directories")
_DEFAULT_TAGS = {"install_sources": "python-runtime", "extension_module": "runtime"}
"""The install_tag of calls that do not name one."""
_BRANCHES = frozenset({"if", "elif", "else", "endif"})


_ANCHOR = re.compile(r"\{(?:py_)?(?:purelib|platlib)\}/", re.ASCII)


class _MesonTooLongError(Exception):
    """The files need more than MAX_STEPS steps."""


@dataclass(slots=True)
class _If:
    """An `if` before its `endif`.

    `is_taken` is True if one of its branches is certainly taken. `is_sure` is True if that is the current branch.
    `had_doubt` is True if an earlier condition is unknown.
    """

    is_taken: bool = False
    is_sure: bool = False
    had_doubt: bool = False


@dataclass(slots=True)
class _MesonBuild:
    """The state after the meson.build files read so far."""

    tree: SourceTree
    nesting: int = 0
    names: dict[str, Value] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)
    extensions: dict[str, None] = field(default_factory=dict)
    visited: set[str] = field(default_factory=set)
    options: Mapping[str, str] = field(default_factory=dict)
    truths: dict[str, Truth] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    open_ifs: list["_If"] = field(default_factory=list)
    is_sure_outside: bool = True
    steps: int = 0

    def value(self, tokens: list[Token]) -> Value:
        """Return the value of an expression."""
        return MesonReader(self.names, self.spend).value(tokens)

    @property
    def is_sure(self) -> bool:
        """Check whether all conditions around the current statement are known to hold."""
        return self.is_sure_outside and all(each.is_sure for each in self.open_ifs)

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise _MesonTooLongError


def installed(tree: SourceTree) -> Installed | None:
    """Return the files and extension modules that the calls in meson.build install, or None if there are none.

    The calls are install_sources, extension_module, install_subdir, install_data, configure_file and similar ones.
    Files in subdir() are read, too. If options do not decide an `if`, both its branches count, so the result is never
    exact. Return None as well if reading takes too many steps.
    """
    settings = tree.table("tool", "meson-python")
    arguments = tree.table("tool", "meson-python", "args")
    content = next((tree.files[name] for name in ("meson.options", "meson_options.txt") if name in tree.files), b"")
    options = read_options(decode_text(content, "meson.options")[0], strings(arguments.get("setup")))
    tags = [text.partition("=")[2] for text in strings(arguments.get("install")) if text.startswith("--tags=")]
    build = _MesonBuild(tree, options=options, tags=frozenset(tags[0].split(",") if tags else ()))
    try:
        _read(build, "")
    except _MesonTooLongError:
        return None
    if not build.paths and not build.extensions:
        return None
    wheel = settings.get("wheel")
    excluded = strings(wheel.get("exclude")) if isinstance(wheel, dict) else []
    patterns = [_ANCHOR.sub("", pattern) for pattern in excluded]
    files = without(by_folder(build.paths), patterns, Patterns.FILE_GLOB, tree.effort)
    return Installed("meson.build", files, tuple(build.extensions), ModulesGrade.DERIVED)


def _read(build: _MesonBuild, folder: str) -> None:
    content = build.tree.files.get(f"{folder}/meson.build".lstrip("/"))
    if content is None or folder in build.visited:
        return
    build.visited.add(folder)
    text = decode_text(content, "meson.build")[0]
    build.spend(len(text) // 4)
    tokens = [(kind, match[kind]) for match in _TOKEN.finditer(text) if (kind := match.lastgroup)]
    outside = build.open_ifs, build.is_sure_outside
    build.open_ifs, build.is_sure_outside = [], build.is_sure
    _run(build, folder, tokens, 0, len(tokens))
    build.open_ifs, build.is_sure_outside = outside


def _run(build: _MesonBuild, folder: str, tokens: list[Token], start: int, end: int) -> None:
    """Run the statements from `start` to `end`."""
    at = start
    while at < end:
        build.spend(1)
        if tokens[at][0] == "word" and tokens[at][1] in _BRANCHES:
            at = _branch(build, tokens, at)
        else:
            at = _statement(build, folder, tokens, at) if tokens[at][0] == "word" else at + 1


def _loop(build: _MesonBuild, folder: str, tokens: list[Token], at: int) -> int:
    """Run a foreach for each known item, or once with all texts as one value. Return the index after its end."""
    start = _line_end(build, tokens, at)
    line = tokens[at + 1 : start]
    colon = next((index for index, token in enumerate(line) if token == ("mark", ":")), len(line))
    value = build.value(line[colon + 1 :])
    names = [text for each, text in line[:colon] if each == "word"]
    end, depth = start, 1
    while end < len(tokens):
        if tokens[end][0] == "word" and tokens[end][1] in {"foreach", "endforeach"}:
            depth += 1 if tokens[end][1] == "foreach" else -1
            if not depth:
                break
        end += 1
    build.spend(end - start)
    build.nesting += 1
    if build.nesting > MAX_LOOPS:
        raise _MesonTooLongError
    for key, item in value.items or [("", value)]:
        bound = [Value((key,), is_scalar=True), item] if len(names) == 2 else [item]
        build.names |= dict(zip(names, bound, strict=False))
        _run(build, folder, tokens, start, end)
    build.nesting -= 1
    return end + 1


def _branch(build: _MesonBuild, tokens: list[Token], at: int) -> int:
    """Handle the keyword of an `if` at `at`. Return the index to continue at, which is after the branches not taken."""
    word = tokens[at][1]
    end = _line_end(build, tokens, at)
    if word == "endif":
        if build.open_ifs:
            build.open_ifs.pop()
        return end
    if word == "if":
        build.spend(len(build.open_ifs) ** 2)
        build.open_ifs.append(_If())
    if not build.open_ifs:
        return end
    here = build.open_ifs[-1]
    here.is_sure = False
    condition = tokens[at + 1 : min(end, at + 2 + MAX_CONDITION)]
    holds = True if word == "else" else truth(condition, build.options, build.truths)
    if here.is_taken or holds is False:
        return _next_branch(build, tokens, end)
    here.is_sure = holds is True and not here.had_doubt
    here.is_taken = holds is True
    here.had_doubt = here.had_doubt or holds is None
    return end


def _next_branch(build: _MesonBuild, tokens: list[Token], at: int) -> int:
    """Return the index of the next keyword of the same `if`."""
    depth = 0
    for index in range(at, len(tokens)):
        kind, text = tokens[index]
        if kind == "word" and text in _BRANCHES:
            if depth == 0 and text != "if":
                build.spend(index - at)
                return index
            depth += (text == "if") - (text == "endif")
    build.spend(len(tokens) - at)
    return len(tokens)


def _statement(build: _MesonBuild, folder: str, tokens: list[Token], at: int) -> int:
    """Run the statement that begins at `at`, and return the index to continue at."""
    word = tokens[at][1]
    following = tokens[at + 1] if at + 1 < len(tokens) else ("line", "\n")
    if word == "foreach":
        return _loop(build, folder, tokens, at)
    if following in {("mark", "="), ("mark", "+=")}:
        end = _line_end(build, tokens, at + 2)
        value = build.value(tokens[at + 2 : end])
        if following[1] == "+=" and (old := build.names.get(word)):
            build.spend(len(old.texts) + len(value.texts))
            value = joined_values(old, value)
        build.names[word] = value
        is_short = following[1] == "=" and end - at <= MAX_CONDITION
        condition = truth(tokens[at + 2 : end], build.options, build.truths) if is_short else None
        build.truths[word] = condition if build.is_sure or build.truths.get(word, condition) == condition else None
        return at + 2  # the expression may itself be a call that installs
    if following == ("mark", "(") and (word in _INSTALLING or word == "subdir"):
        arguments, keywords, end = _arguments(build, tokens, at + 2)
        if word == "subdir":
            for name in arguments[0].texts[:1] if arguments else ():
                _read(build, clean_path(f"{folder}/{name}"))
        elif len(build.paths) + len(build.extensions) < MAX_NAMES:
            _install(build, folder, word, arguments, keywords)
        return end
    return at + 1


def _install(build: _MesonBuild, folder: str, call: str, arguments: list[Value], keywords: Mapping[str, Value]) -> None:
    subdir = _folder(keywords.get("subdir", Value()))
    site = keywords.get("install_dir", Value())
    texts = [text for value in arguments for text in value.texts if "@" not in text]
    tag = keywords.get("install_tag", Value()).texts[:1]
    if build.tags and build.tags.isdisjoint(tag or (_DEFAULT_TAGS.get(call, ""),)):
        return
    if call == "extension_module":
        where = _folder(site) if site.is_site else subdir
        for name in arguments[0].texts if arguments and "install" in keywords else ():
            if "@" not in name and "." not in name:  # the list also has the sources of the module
                build.extensions[f"{where}/{name}".lstrip("/").replace("/", ".")] = None
    elif call in _LIBRARIES:
        prefix = next(iter(keywords.get("name_prefix", Value(("lib",))).texts), "")
        if site.is_site and texts and "install" in keywords:
            build.extensions[f"{_folder(site)}/{prefix}{texts[0]}".lstrip("/").replace("/", ".")] = None
    elif call == "install_sources":
        keeps = "preserve_path" in keywords
        for text in texts:
            name = clean_path(text) if keeps else text.rpartition("/")[2]
            build.paths[f"{subdir}/{name}".lstrip("/")] = None
    elif site.is_site:
        _install_to(build, folder, call, texts, keywords)


def _install_to(build: _MesonBuild, folder: str, call: str, texts: list[str], keywords: Mapping[str, Value]) -> None:
    """Store the files that a call installs to its install_dir."""
    target = _folder(keywords["install_dir"])
    if call != "install_subdir":
        names = texts if call == "install_data" else keywords.get("output", Value()).texts
        for text in (*names, *(texts[1:2] if call == "copyfile" else ())):
            if "@" not in text:
                build.paths[f"{target}/{text.rpartition('/')[2]}".lstrip("/")] = None
        return
    for text in texts:
        source = clean_path(f"{folder}/{text}")
        inside = target if "strip_directory" in keywords else f"{target}/{source.rpartition('/')[2]}".lstrip("/")
        excluded = [clean_path(each) for key in _EXCLUDING for each in keywords.get(key, Value()).texts]
        files = without(moved(build.tree.below(source), source), excluded, Patterns.GLOB, build.tree.effort)
        build.paths |= dict.fromkeys(paths_of(moved(files, "", inside)))


def _folder(value: Value) -> str:
    return clean_path("/".join(text[:MAX_FOLDER_LENGTH] for text in value.texts[:MAX_FOLDER_PARTS]))[:MAX_FOLDER_LENGTH]


def _line_end(build: _MesonBuild, tokens: list[Token], at: int) -> int:
    """Return the end of the expression that begins at `at`: the first end of a line outside of all brackets."""
    depth = 0
    for end in range(at, len(tokens)):
        kind, text = tokens[end]
        if kind == "mark":
            depth += (text in "([{") - (text in ")]}")
        elif kind == "line" and depth <= 0:
            build.spend(end - at)
            return end
    build.spend(len(tokens) - at)
    return len(tokens)


def _arguments(build: _MesonBuild, tokens: list[Token], start: int) -> tuple[list[Value], dict[str, Value], int]:
    """Return the positional and keyword arguments of a call, and the index of its end. `start` follows the bracket."""
    depth, at = 1, start
    pieces: list[list[Token]] = [[]]
    while at < len(tokens) and depth:
        kind, text = tokens[at]
        if kind == "mark" and len(text) == 1:
            depth += (text in "([{") - (text in ")]}")
        if depth == 1 and (kind, text) == ("mark", ","):
            pieces.append([])
        elif depth and kind != "line":
            pieces[-1].append((kind, text))
        at += 1
    positional, keywords = [], {}
    for piece in pieces:
        if len(piece) > 1 and piece[0][0] == "word" and piece[1] == ("mark", ":"):
            is_short = len(piece) <= MAX_CONDITION
            if not (is_short and truth(piece[2:], build.options, build.truths) is False):
                keywords[piece[0][1]] = build.value(piece[2:])
        elif piece:
            positional.append(build.value(piece))
    for key, value in keywords.pop("kwargs", Value()).items:
        if not value.is_false:
            keywords.setdefault(key, value)
    return positional, keywords, at
