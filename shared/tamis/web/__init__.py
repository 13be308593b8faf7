"""What every HTTP server of Tamis shares: whom it answers, how much at once, and how it says no."""
