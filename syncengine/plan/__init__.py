"""recorded + desired → a plan of calls with its gate and summary. Pure, but for `planner`, which loads both."""
