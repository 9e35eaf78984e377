"""Work by hand on a project: the code behind `init`, `fmt`, `adopt`, `test`, `state rebuild` and `time`."""
