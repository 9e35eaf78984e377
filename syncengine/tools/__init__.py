"""What prepares and tidies a project: `init`, `fmt`, `adopt`."""
