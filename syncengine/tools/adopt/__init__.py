"""What exists on the service already, as people have it in files (`tables`: CSV) → rows of the state (`listed`)."""
