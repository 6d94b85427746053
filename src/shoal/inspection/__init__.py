"""The proposed roles of a table in readable form: columns, reasons and the command that masks the table."""
