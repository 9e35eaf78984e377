"""Templates in one sandbox, with their filters and bounds, for manifests, rules and deliveries."""
