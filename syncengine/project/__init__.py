"""Load `syncengine.yaml` as a project: environments, secrets, variables, and its place in Git."""
