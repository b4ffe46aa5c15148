"""Scopes as they are stored: rules in force, edges, the projects that roots lead to, and how scopes stand.

What follows from roots, rules and requirements is computed in `pypi_assets/scopes/`, without the database.
"""
