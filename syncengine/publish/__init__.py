"""A plan, a report or findings → one comment of a pull request on GitHub or GitLab (docs/ci.md)."""
