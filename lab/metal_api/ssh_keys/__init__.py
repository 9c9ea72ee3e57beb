"""SSH keys of projects."""
