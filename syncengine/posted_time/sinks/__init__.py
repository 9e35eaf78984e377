"""SQL, HTTP and JSON lines as targets of posted time, under one `contract`."""
