"""syncengine.yaml → a project: environments, secrets, variables, and its place in Git."""
