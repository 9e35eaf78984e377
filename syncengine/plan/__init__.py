"""Plan the calls that turn recorded resources into desired ones. Pure, except for `planner`, which loads both."""
