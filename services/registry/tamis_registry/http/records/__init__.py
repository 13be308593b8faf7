"""Routes that read records of topics."""
