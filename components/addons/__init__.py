"""What is installed when a cluster is complete: operators, their objects, the image registry's storage."""
