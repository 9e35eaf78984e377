"""`generate` blocks and text templates → resources, with a map back to their places."""
