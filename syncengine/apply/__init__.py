"""Execute a plan: requests to the service, events, a report and an exit code (docs/planning.md 4)."""
