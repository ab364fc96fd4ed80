"""The OpenAI protocol: bodies, their meaning, and the shapes of answers. Knows nothing of HTTP."""
