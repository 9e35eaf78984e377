"""Format manifests in a canonical layout: classify lines, order keys, and round-trip the YAML."""
