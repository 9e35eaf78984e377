"""The sinks of posted time: SQL, HTTP and JSON lines, which share one `contract`."""
