"""Follows an index without changelog and serials: looks at its pages in rounds, and makes events of what differs.

- `shown_pages` has what a page shows; `html_pages` reads PEP 503, `page_source` requests pages and lists.
- `comparison` decides what is believed and which events follow; `polling` when a project is looked at next.
- `memory` is the protocol of what is kept between rounds; the catalog's database keeps it.
- `observed_index` is the index that `crawl/` follows. It answers from memory, with serials of its own counter.
"""
