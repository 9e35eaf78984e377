"""A group of posted time → inbox → rules → sinks → verdict (docs/posted-time.md)."""
