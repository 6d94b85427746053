"""The report: one self-contained HTML page that may be published. Originals reach it through `protection` alone."""
