"""lists of what exists on the service already (CSV and the like) → rows of the state."""
