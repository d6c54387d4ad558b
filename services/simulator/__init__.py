"""The whole fleet in one process, under virtual time, on a log that fails on demand."""
