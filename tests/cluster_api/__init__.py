"""The Cluster API providers, against a real API server."""
