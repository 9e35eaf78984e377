"""The time-recording service: its operations, their bodies, and the client that calls them."""
