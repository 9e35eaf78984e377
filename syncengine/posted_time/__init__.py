"""The delivery of posted time through inbox, rules and sinks, up to a verdict (docs/posted-time.md)."""
