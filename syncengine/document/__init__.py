"""Read YAML and JSON with a line and a column for every value. No other package decides the meaning of YAML.

bytes → `text` (decoded, clean) → `reader` (nodes) → `validation` (models). Manifests and the project file are both read
here, so this package is below `project`, whose `types` the leaves of all models have. JSON that programs exchange
needs no places: `json_text` decodes and encodes it, for every room.
"""
