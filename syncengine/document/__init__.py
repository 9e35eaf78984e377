"""YAML and JSON with a line and a column for every value: the one place that decides what YAML means.

bytes → `text` (decoded, clean) → `reader` (nodes) → `model_reader` and `scalar_readers` (as `field_types` ask).
Files without anything odd may take the short way: text → `fast_reader` → the same values without nodes.
Manifests and the project file are both read here, so this stands below `project`.
"""
