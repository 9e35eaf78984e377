"""Templates of manifests and of posted time: what both know, and where they differ."""
