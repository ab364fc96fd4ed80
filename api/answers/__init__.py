"""Answers: the thought, the content and the tool calls in them, as one structural tag and as what its reader says."""
