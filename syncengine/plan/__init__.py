"""recorded, desired → a plan of calls with its gate and summary. Pure, but for the loading of what it needs."""
