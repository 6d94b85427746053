"""The report: one self-contained HTML page that may be published. It shows originals only through `protection`."""
