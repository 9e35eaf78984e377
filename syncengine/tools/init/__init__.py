"""Create new projects from the template files in `files/`."""
