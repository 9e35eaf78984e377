"""A state stored as versions under a ref of a Git repository, updated by compare and swap (docs/state.md)."""
