"""The JSON Schemas of all that is written and read."""
