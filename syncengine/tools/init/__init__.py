"""What a new project begins with: files as they are (`files/`), put into a folder (`project`)."""
