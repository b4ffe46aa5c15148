"""Follows an index without changelog and serials: looks at its pages in rounds, and makes events of what differs.

- `shown_pages` has what a page shows; `html_pages` reads PEP 503, `page_source` requests pages and lists.
- `comparison` decides what is believed and which events follow.
- `memory` is the protocol of what is kept between rounds, in the catalog's database, and decides when a project is due.
- `observed_index` is the index that `crawl/` follows. It answers from memory, with serials of its own counter.
"""
