"""Observations of the index: projects, events, snapshots of pages, and the outcomes of visits of each project.

Facts are stored here as they were observed. Facts derived from them (which file was live when) are in `derived`;
contents of files are in `reads`.
"""
