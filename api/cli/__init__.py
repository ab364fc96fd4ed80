"""The `formcast` command, one module a command."""
