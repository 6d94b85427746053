"""The page: from a file to a release in the browser. It uses the public names of shoal and nothing else."""
