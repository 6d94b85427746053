"""Methods, group sizes and promises side by side on one table: what each loses and risks."""
