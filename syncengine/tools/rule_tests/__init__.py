"""Test rules and manifests: compare the plan for recorded and declared resources with the expected plan."""
