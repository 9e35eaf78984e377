"""Declarative tags, tag categories and activity types for a time-recording service."""

__version__ = "0.1.0"

DISTRIBUTION = "syncengine-connect"
"""The package to install. On the package index, `syncengine` is another project."""
