"""Tags as posted time shows them, joined with the state: where the service differs from the recorded content."""
