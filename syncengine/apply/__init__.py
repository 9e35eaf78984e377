"""plan → effects, told as events. Applying is "send, then write what the call said" (docs/planning.md 4)."""
