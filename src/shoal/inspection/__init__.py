"""What the columns of a table seem to be: roles and kinds that people judge before a table is masked."""
