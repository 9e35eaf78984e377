"""Declarative tags, tag categories and activity types for a time-recording service."""

__version__ = "0.1.0"
