"""The promises that a group must keep beyond k records."""
