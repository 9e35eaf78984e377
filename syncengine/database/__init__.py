"""Databases by path or URL: opening them, and what their errors mean."""
