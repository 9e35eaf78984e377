"""The connector at the service: whose key this is, its registration and its health."""
