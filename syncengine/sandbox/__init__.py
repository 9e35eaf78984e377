"""The embedded sandbox: the service's connector interface over HTTP on loopback, with its own data (docs/service.md).

Import `sandbox.app` only where a sandbox is started, because it loads the web server.
"""
