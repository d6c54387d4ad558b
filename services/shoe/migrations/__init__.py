"""Revisions of this service's projection, run by `services.kernel.migrations`."""
