"""Plans in the registry's loop: the newest versions with their origins, and the plan still to be written."""
