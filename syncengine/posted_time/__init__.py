"""Posted time: from the service (`fetch`, `webhook`) through the inbox to the sinks, and what is answered (product.md §8)."""
