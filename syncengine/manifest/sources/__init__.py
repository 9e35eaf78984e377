"""Files (CSV, JSON, YAML), databases and services → rows."""
