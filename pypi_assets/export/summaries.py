"""Summarizes each format in a sentence, for the help of the commands. Imports nothing, so that help appears at once."""

SUMMARIES = {
    "gazelle": "gazelle_python.yaml, for Gazelle with rules_python.",
    "pants": "A target python_requirements, for a BUILD file of Pants.",
    "deptry": "The table package_module_name_map, for the pyproject.toml of deptry.",
    "fawltydeps": "A file for --custom-mapping-file of FawltyDeps.",
    "uv-metadata": "Tables dependency-metadata for uv.toml: sdists are not built.",
}
