"""The proposed roles of a table as people read them: columns, reasons, and the command that masks the table."""
