"""A revision in Git, and its history → the rows of a state that is lost (`state rebuild`)."""
