"""Blocks and text templates → resources, each with the place that it was made at."""
