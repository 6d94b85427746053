"""Roles and kinds of columns, recognised from names and cells, and the proposed masking."""
