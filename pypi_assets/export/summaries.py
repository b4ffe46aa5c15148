"""One sentence about each format, for the help of commands. It imports nothing, so that help is fast."""

SUMMARIES = {
    "gazelle": "Write gazelle_python.yaml, for Gazelle with rules_python.",
    "pants": "Write a python_requirements target for a BUILD file of Pants.",
    "deptry": "Write deptry's table package_module_name_map for pyproject.toml.",
    "fawltydeps": "Write a file for --custom-mapping-file of FawltyDeps.",
    "uv-metadata": "Write dependency-metadata for uv.toml, so that uv builds no sdists.",
}
