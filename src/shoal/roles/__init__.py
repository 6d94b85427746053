"""Roles and kinds of the columns of a table, recognised from names and cells, and the masking that follows."""
