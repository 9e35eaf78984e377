"""Manage the connector at the service: the key's team, registration and health."""
