"""Templates of manifests and of posted time: what they share, and where they differ."""
