"""The masking of a table: request, plan, pipeline, release, verification and manifest."""
