"""What a YAML or JSON file says, with line and column: the one place that decides what YAML means.

bytes → `text` (decoded, clean) → `reader` (nodes) → `tables` and `values` (as the `shapes` of fields ask).
Files without anything odd may take the short way: text → `plain` → the same values without nodes.
Manifests and the project file are both read here, so this stands below `settings`.
"""
