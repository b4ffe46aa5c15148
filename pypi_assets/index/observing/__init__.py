"""Follows an index without a changelog and serials: polls its pages in rounds, and derives events from the differences.

- `shown_pages`: the content of a page. `html_pages` reads PEP 503, and `page_source` requests pages and lists.
- `comparison`: decides which observations are accepted and which events follow.
- `round_state`: the protocol for storing state between rounds, implemented by the catalog's database, and the polling
  intervals.
- `observed_index`: the index that `crawl/` follows. It answers from the stored state, with serials from a local
  counter.
"""
