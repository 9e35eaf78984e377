"""Comments of pull requests, on imitations of both hosts."""
