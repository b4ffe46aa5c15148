"""Pages for people. They show answers of the API, and compute nothing about packages themselves.

A page is a `WebPage` (page.py): a path, parts that the API or `lookup/` answer, and a template. The same parts are the
content of its `.json`. Pages also work without the script `static/pages.js`. `rendering.py` makes all text inert.
"""
