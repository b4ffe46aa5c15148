"""Work out what maturin puts into a wheel: a compiled module, and the Python package next to it or around it."""

from pypi_assets.distributions.members import Folder, by_folder, merged
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Patterns, matching, without
from pypi_assets.distributions.pyproject import parse_toml, strings, table
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, joined, module_name, moved


def installed(tree: SourceTree) -> Installed | None:
    """Return the compiled module and the Python package of the same name below `python-source`.

    The name comes from `module-name`, the library in Cargo.toml, or the project. If there is no package of this name,
    maturin creates one around the compiled module. A crate that only builds a program provides no module.
    """
    settings = tree.table("tool", "maturin")
    name = settings.get("module-name")
    declared = name if isinstance(name, str) and name else _library(tree)
    bindings = settings.get("bindings") or _bindings(tree)
    is_certain = declared is not None and bindings in {"pyo3", "bin"}
    grade = ModulesGrade.EXACT if is_certain else ModulesGrade.DERIVED
    name = declared or module_name(tree.project or "")
    *parents, last = name.split(".")
    source = settings.get("python-source")
    folder = clean_path(source) if isinstance(source, str) else _default_folder(tree, (parents or [last])[0])
    start = f"{folder}/" if folder else ""
    packages = strings(settings.get("python-packages")) or [(parents or [last])[0]]
    names = [package.replace(".", "/") for package in packages]
    folders = [f"{start}{package}" for package in names]
    selected = [each for path in folders if not _is_crate(tree, path) for each in tree.below(path)]
    selected = selected or by_folder(path for package in names if tree.has_file(path := f"{start}{package}.py"))
    included = _named_for_wheels(settings.get("include"), are_plain_ones=False)
    selected = merged([*selected, *matching(tree.below(""), included, Patterns.GLOB, tree.effort)])
    excluded = _named_for_wheels(settings.get("exclude"), are_plain_ones=True)
    files = moved(without(selected, excluded, Patterns.GLOB, tree.effort), folder)
    if bindings == "bin":
        return Installed("maturin", files, grade=grade)
    if parents:
        return Installed("maturin", files, (name,), grade)
    if not files:
        files = by_folder([f"{name}/__init__.py"])
    return Installed("maturin", files, (f"{name}.{name}",), grade)


def _named_for_wheels(value: object, *, are_plain_ones: bool) -> list[str]:
    """Return the patterns of include or exclude that apply to wheels.

    `are_plain_ones` says whether patterns without a format count, too.
    """
    patterns = []
    for entry in value if isinstance(value, list) else ():
        path = entry.get("path") if isinstance(entry, dict) else entry
        named = entry.get("format") if isinstance(entry, dict) else None
        formats = [named] if isinstance(named, str) else strings(named)
        if isinstance(path, str) and ("wheel" in formats if formats else are_plain_ones):
            patterns.append(clean_path(path))
    return patterns


def _is_crate(tree: SourceTree, folder: str) -> bool:
    """Check whether the folder named like the package is the crate itself and not a package."""
    return folder not in tree.packages and "Cargo.toml" in tree.members.get(f"{tree.top}{folder}", Folder())


def _default_folder(tree: SourceTree, name: str) -> str:
    return next((folder for folder in ("", "src") if f"{folder}/{name}".lstrip("/") in tree.packages), "")


def _manifest_path(tree: SourceTree) -> str:
    manifest = tree.table("tool", "maturin").get("manifest-path")
    return clean_path(manifest) if isinstance(manifest, str) else "Cargo.toml"


def _bindings(tree: SourceTree) -> str:
    """Return the default of the setting `bindings`: `pyo3`, or `bin` for a program, or `other`.

    `other` covers bindings that maturin detects by further dependencies of the crate.
    """
    path = _manifest_path(tree)
    cargo = tree.files.get(path, b"pyo3")
    if b"pyo3" in cargo:
        return "pyo3"
    sources = tree.members.get(f"{tree.top}{joined(path.rpartition('/')[0], 'src')}", Folder())
    is_program = b"[[bin]]" in cargo or "main.rs" in sources
    return "bin" if is_program and not any(word in cargo for word in (b"cdylib", b"uniffi", b"[lib]")) else "other"


def _library(tree: SourceTree) -> str | None:
    """Return the name of [lib] or [package] in the crate's Cargo.toml, or None if it has neither."""
    path = _manifest_path(tree)
    try:
        cargo = parse_toml(decode_text(tree.files.get(path, b""), path)[0])
    except ValueError:
        cargo = {}
    for section in ("lib", "package"):
        if isinstance(name := table(cargo, section).get("name"), str) and name:
            return name.replace("-", "_")
    return None
