"""HTTP with any service, and our own servers: exchanges within limits, pages of lists, text that is safe to show."""
