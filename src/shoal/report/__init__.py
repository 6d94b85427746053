"""Reports as self-contained HTML pages; a page that may be published shows originals only through `protection`."""
