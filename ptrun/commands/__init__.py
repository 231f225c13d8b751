"""The commands: one verb, one file; plain values in and out."""
