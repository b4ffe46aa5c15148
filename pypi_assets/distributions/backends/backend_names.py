"""The modules of the build backends that are followed, by which pyproject.toml names them.

Only the exact names count: anybody may publish a package whose name begins like one of them.
"""

SETUPTOOLS = frozenset({"setuptools.build_meta"})
AROUND_SETUPTOOLS = frozenset({"scikit_build_core.setuptools.build_meta", "jupyter_packaging.build_api", "pbr.build"})
"""Backends that call setuptools', and may add to what that does."""
FLIT = frozenset({"flit_core.buildapi", "flit.buildapi", "flit_scm"})
HATCHLING = frozenset({"hatchling.build"})
POETRY = frozenset({"poetry.core.masonry.api", "poetry.masonry.api", "poetry_dynamic_versioning.backend"})
PDM_PEP517 = frozenset({"pdm.pep517.api"})
PDM = frozenset({"pdm.backend"}) | PDM_PEP517
UV_BUILD = frozenset({"uv_build"})
MATURIN = frozenset({"maturin"})
SCIKIT_BUILD_CORE = frozenset({"scikit_build_core.build"})
MESON_PYTHON = frozenset({"mesonpy"})
MESONPEP517 = frozenset({"mesonpep517.buildapi"})
CMEEL = frozenset({"cmeel", "cmeel.build"})
WHEY = frozenset({"whey"})
TRAMPOLIM = frozenset({"trampolim"})
PY_BUILD_CMAKE = frozenset({"py_build_cmake.build", "py_build_cmake.build_component"})
ENSCONS = frozenset({"enscons.api"})
SPHINX_THEME_BUILDER = frozenset({"sphinx_theme_builder"})
