"""Commands that prepare and tidy a project: `init`, `fmt`, `adopt`."""
