"""Databases by path or URL: opening them, and the meaning of their errors."""
