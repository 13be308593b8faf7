"""Routes that show the state of the fleet."""
