"""The page, which leads from a file to a release in the browser. It uses only the public names of shoal."""
