"""What is published from the catalog: names and states of dumps, LevelDB versions and Parquet exports.

Rows of dumps are selected here. Writing files is the task of `dumps/`, `leveldbs/` and `parquet/`.
"""
