"""What a group must satisfy beyond k records."""
