"""Files, found (`files`) and read by their models (`schema`) → declarations with their places (`declarations`)."""
