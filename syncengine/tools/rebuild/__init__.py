"""Rebuild the rows of a lost state from a revision in Git (`state rebuild`)."""
