"""The reconcilers, one per kind of object: each reads the object, starts the needed steps and writes its status."""
