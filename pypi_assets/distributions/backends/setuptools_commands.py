"""Find the folders that a build by setuptools uses.

Folders of an earlier build that the sdist contains are installed, too. Options in setup.py, setup.cfg or
[tool.distutils] may name other folders.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pypi_assets.characters import lower
from pypi_assets.distributions.members import Files
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.pyproject import items
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.source_tree import SourceTree, clean_path, joined, moved

_HARMLESS_TEXT = (
    "byte_compile compile optimize force debug verbose quiet dry_run record parallel plat_name python_tag universal"
    " py_limited_api build_number compression owner group keep_temp dist_dir build_scripts executable compiler"
    " single_version_externally_managed old_and_unmanageable formats include_dirs library_dirs libraries define undef"
    " rpath link_objects swig swig_opts swig_cpp user tag_build tag_date tag_svn_revision no_date egg_base build_temp"
    " build_clib cython_cplusplus cython_c_in_temp prefix exec_prefix home root install_base install_platbase"
    " install_purelib install_platlib install_headers install_scripts install_data"
)
_HARMLESS = frozenset(_HARMLESS_TEXT.split())
"""Options that do not affect which modules are installed. `bdist_wheel` sets the folders of `install` itself."""
_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_COMMANDS = frozenset(
    {"build", "build_py", "build_ext", "install", "install_lib", "bdist", "bdist_wheel", "dist_info", "egg_info"}
)
"""Commands that run when a wheel is built and whose options matter."""
_FOLLOWED = frozenset(
    {
        ("build", "build_base"),
        ("build", "build_lib"),
        ("build", "build_purelib"),
        ("build", "build_platlib"),
        ("build_py", "build_lib"),
        ("install_lib", "build_dir"),
        ("install_lib", "install_dir"),
        ("install", "install_lib"),
        ("install", "extra_path"),
        ("install", "skip_build"),
        ("install_lib", "skip_build"),
        ("bdist_wheel", "skip_build"),
        ("bdist", "bdist_base"),
        ("bdist_wheel", "bdist_dir"),
    }
)


@dataclass(frozen=True, slots=True)
class BuildFolders:
    """The folders of a build.

    A wheel is made from `pure` if nothing is compiled, or else from `platform` or a folder whose path begins with it.
    `installed` is set if another folder is installed instead. `modules` is set if packages and modules are built into a
    separate folder. `wheels` are folders in the sdist that may become the wheel. `target` is the folder in
    site-packages for all files except those in `wheels`, or None if they are installed outside of the wheel.
    `are_skipped` is True if nothing is built before the installation. `are_followed` is True if every option with an
    effect is understood.
    """

    pure: str
    platform: str
    installed: str | None
    modules: str | None
    wheels: tuple[str, ...]
    target: str | None
    are_skipped: bool
    are_followed: bool


def build_folders(tree: SourceTree) -> BuildFolders:
    """Return the folders that options in setup.py, setup.cfg and pyproject.toml name, or the defaults."""
    options = _command_options(tree)
    are_followed = not any(_is_unfollowed(section, values) for section, values in options.items())
    build = {name: clean_path(value) for name, value in options.get("build", {}).items()}
    base = build.get("build_base", "build")
    pure = build.get("build_lib") or build.get("build_purelib") or f"{base}/lib"
    platform = build.get("build_lib") or build.get("build_platlib") or f"{base}/lib."
    bdist_base = _folder(options, "bdist", "bdist_base")
    wheel = _folder(options, "bdist_wheel", "bdist_dir")
    if wheel is None and bdist_base is not None:
        wheel = joined(bdist_base, "wheel")
    names = options.get("install", {}).get("extra_path", "").split(",")
    target: str | None = joined(_folder(options, "install", "install_lib") or "", clean_path(names[-1]))
    if (elsewhere := _folder(options, "install_lib", "install_dir")) is not None:
        are_followed &= not f"{elsewhere}/".startswith(f"{base}/bdist." if wheel is None else f"{wheel}/")
        target = None
    return BuildFolders(
        pure,
        platform,
        installed=_folder(options, "install_lib", "build_dir"),
        modules=_folder(options, "build_py", "build_lib"),
        wheels=_folders_of_wheels(tree, f"{base}/bdist.") if wheel is None else (wheel,),
        target=target,
        are_skipped=lower(options.get("bdist_wheel", {}).get("skip_build", "")) in _TRUE,
        are_followed=are_followed,
    )


def _folder(options: Mapping[str, Mapping[str, str]], command: str, option: str) -> str | None:
    """Return the folder that an option of a command names, or None if it is not given."""
    value = options.get(command, {}).get(option)
    return None if value is None else clean_path(value)


def _folders_of_wheels(tree: SourceTree, start: str) -> tuple[str, ...]:
    """Return the folders in the sdist such as `build/bdist.linux-x86_64/wheel`. A machine uses only one of them."""
    depth = start.count("/") + 1
    wheel_folders = [each for each in tree.folders if each.startswith(start) and each.endswith("/wheel")]
    return tuple(sorted(each for each in wheel_folders if each.count("/") == depth))


def built_modules(files: Files, folders: BuildFolders, *, is_pure: bool) -> tuple[Files, bool]:
    """Return the declared packages and modules that the wheel contains, and whether all machines build the same.

    `build_py` can build them into a folder that is not installed, or into a subfolder of the installed folder.
    """
    if folders.modules is None:
        return files, True
    installed = folders.installed
    if installed is None:
        installed = folders.pure if is_pure else folders.platform
        if not is_pure and installed.endswith("."):  # the name of the platform follows
            return [], not folders.modules.startswith(installed)
    if folders.modules == installed:
        return files, True
    start = f"{installed}/" if installed else ""
    return (moved(files, "", folders.modules[len(start) :]) if folders.modules.startswith(start) else []), True


def left_in_wheel(tree: SourceTree, folders: BuildFolders) -> Files:
    """Return the modules in those folders of the sdist that become the wheel."""
    return [each for folder in folders.wheels if folder for each in moved(tree.below(folder), folder)]


def left_over(tree: SourceTree, folders: BuildFolders, *, is_pure: bool, may_be_pure: bool) -> tuple[Files, bool]:
    """Return the modules of an earlier build in the sdist, and whether all machines install them."""
    files: Files = []
    if may_be_pure and folders.pure:
        files += moved(tree.below(folders.pure), folders.pure)
    by_machine: Files = []
    if not is_pure:
        depth = folders.platform.count("/")
        for folder in sorted(each for each in tree.folders if each.startswith(folders.platform)):
            if folder.count("/") == depth:
                by_machine += moved(tree.below(folder), folder)
    return [*files, *by_machine], not by_machine and (is_pure or not files)


def _is_unfollowed(section: str, options: Mapping[str, str]) -> bool:
    """Check whether options of a command can change the installed modules in a way that is not understood."""
    if section == "aliases":
        return not _COMMANDS.isdisjoint(options)
    if section == "global":
        return "command_packages" in options
    if section not in _COMMANDS:
        return False
    return any(
        option not in _HARMLESS and ((section, option) not in _FOLLOWED or not _is_plain(value))
        for option, value in options.items()
    )


def _is_plain(value: str) -> bool:
    """Check whether `value` is a path below the project without variables."""
    return not value.startswith("/") and not set("~$%") & set(value) and ".." not in value.split("/")


def _command_options(tree: SourceTree) -> dict[str, dict[str, str]]:
    """Return the options by command: first from setup.py, then overridden by setup.cfg, then by [tool.distutils]."""
    script = tree.read_setup_script()
    options = {command: {**values} for command, values in ((script and script.options) or {}).items()}
    text = decode_text(tree.files.get("setup.cfg", b""), "setup.cfg")[0]
    for command, values in parse_setup_cfg(text).items():
        options[command] = options.get(command, {}) | values
    if "install-lib" in text and "install-lib" in parse_setup_cfg(text, names_as_written=True).get("install", {}):
        # spelled with a hyphen, the option applies only outside of virtual environments, so it is treated as not
        # understood
        options["install"]["install-lib"] = options["install"].pop("install_lib")
    for command, values in tree.table("tool", "distutils").items():
        section = options.setdefault(command.replace("-", "_"), {})
        section |= {name.replace("-", "_"): str(value) for name, value in items(values)}
    return options
