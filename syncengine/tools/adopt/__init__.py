"""Turn lists of resources that already exist on the service into rows of the state."""
