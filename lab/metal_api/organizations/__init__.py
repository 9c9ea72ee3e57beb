"""Organizations, and API keys of projects."""
