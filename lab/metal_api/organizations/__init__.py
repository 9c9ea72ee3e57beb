"""The user, organizations, and API keys."""
