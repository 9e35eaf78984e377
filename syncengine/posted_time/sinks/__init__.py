"""The sinks of posted time, which share one `contract`."""
