"""Files, databases and services → rows."""
