"""The files of a new project (`files/`), and their way into a folder (`new_project`)."""
