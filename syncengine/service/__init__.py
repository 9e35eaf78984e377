"""The time-recording service: its operations, what they carry, and the client that calls them."""
