"""Call the time-recording service: its operations, their JSON bodies, and the client."""
