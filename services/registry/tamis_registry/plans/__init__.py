"""Plans in the registry's loop: the newest versions as written, and the plan that is still to be written."""
