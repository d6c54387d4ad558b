"""Revisions of the table of witnesses, run by `services.kernel.migrations`."""
