"""Templates in a sandbox, with their filters and budgets, for manifests and for deliveries."""
