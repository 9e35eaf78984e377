"""Files, templates and rows of sources → desired resources, each with its place."""
