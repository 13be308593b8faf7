"""Routes that change definitions, or try them."""
