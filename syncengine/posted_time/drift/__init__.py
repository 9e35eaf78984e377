"""Tags whose content in posted time differs from the content recorded in the state."""
