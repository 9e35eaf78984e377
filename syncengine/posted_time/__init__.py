"""Posted time: from the service through the inbox to the sinks, and what the service is told (docs/posted-time.md)."""
