"""Pages for people. They show what the API answers, and compute nothing about packages themselves.

A page is a `Page` (page.py): a path, parts that the API or `lookup/` answer, and a template. The same parts are its
`.json`. Pages work without their one script, `static/pages.js`. All text comes through `rendering.py`, which makes it
inert.
"""
