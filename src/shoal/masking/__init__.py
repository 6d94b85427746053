"""The way of the data, written once: request, plan, pipeline, release, manifest, verification."""
