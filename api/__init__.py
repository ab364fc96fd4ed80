"""People -> requests: the Python API, the HTTP server and the command line."""
