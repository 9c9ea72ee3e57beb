"""What happened, as the API tells it."""
