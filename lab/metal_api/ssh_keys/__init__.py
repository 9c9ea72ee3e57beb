"""SSH keys of projects and of the user."""
