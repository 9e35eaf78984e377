"""The cached prior state: recorded rows, journal, history, inbox and locks (docs/planning.md 1)."""
