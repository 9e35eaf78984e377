"""The cached prior state: recorded rows, the journal of intents, runs, and the lock (docs/planning.md 1)."""
