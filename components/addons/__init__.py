"""What is installed once the cluster is complete: operators, their custom resources, the image registry's storage."""
