"""Where posted time goes: SQL, HTTP and JSON lines, which all keep the one contract of `contract`."""
