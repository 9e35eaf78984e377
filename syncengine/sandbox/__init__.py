"""The embedded service: its interface over HTTP on loopback, with a world of its own (docs/formats.md §9).

Import `sandbox.app` only where a sandbox is started: it brings the web server with it.
"""
