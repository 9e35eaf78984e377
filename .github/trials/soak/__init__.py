"""One hour of `serve` in bad weather: `python -m trials.soak --minutes 60`. Outside the daily run."""
