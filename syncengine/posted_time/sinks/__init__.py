"""The sinks of posted time: SQL, HTTP, JSON lines and CSV, which share one `contract`."""
