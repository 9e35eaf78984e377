"""One hour of `serve` in bad weather: `python -m tests.soak --minutes 60`. Outside the daily run."""
