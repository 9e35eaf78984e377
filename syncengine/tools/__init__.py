"""Prepare and tidy projects: the code behind `init`, `fmt`, `adopt`, `test` and `state rebuild`."""
