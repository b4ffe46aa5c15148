"""The client of a package index: its changelog, its list of projects, project pages and files.

What answers mean for the catalog does not belong here: that is `crawl/`.

- `client`: `IndexClient`, one method for each kind of request; the way in for other packages.
- `transport`: sends a request politely and raises typed errors (`errors`); mirrors and webhooks use it too. It uses
  `connections` (proxies, TLS), `addresses` and `urls` (where requests may go), `deadlines`, `credentials` and `rate`.
- `changelog`, `pages`: read one kind of answer each, and refuse what breaks the protocol.
- `files`: distributions, as a stream or by byte ranges.
- `actions`: what a changelog event does to files; `models`: the values that all of these return.
"""
