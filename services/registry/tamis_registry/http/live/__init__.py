"""Events as they come, and the console that shows them."""
