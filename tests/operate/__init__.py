"""Several machines, and what people deploy on them."""
