"""The embedded service: its interface over HTTP on loopback, with a world of its own (docs/sandbox.md).

Import `sandbox.app` only where a sandbox is started: it brings the web server with it.
"""
