"""The cached prior state: recorded rows, the journal of intents, runs, and the lock (engine.md 1)."""
