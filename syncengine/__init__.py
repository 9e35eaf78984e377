"""Declarative tags, tag categories and activity types for a time-recording service."""

__version__ = "0.1.0"

DISTRIBUTION = "syncengine"
"""The name that the package is installed by; that of the import and of the command is `syncengine` whatever it is."""
