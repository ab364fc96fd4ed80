"""The HTTP server over one running model."""
