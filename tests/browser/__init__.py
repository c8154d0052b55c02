"""What a Chromium makes of the pages that commands write: `make browser`."""
