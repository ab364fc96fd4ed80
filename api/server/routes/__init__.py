"""The routes, one module a family of clients."""
