"""Programs that measure and try the whole product, outside the suite. They run from the project's root.

`PYTHONPATH=.github:. python -m trials.bench`, `trials.bench.peers`, `trials.bench.git_state` or `trials.soak`.
"""
