"""A state as versions in a store that can compare and swap: a ref of a Git repository (docs/git-state.md)."""
