"""plan → requests, reported as events → report and exit code (docs/planning.md 4)."""
