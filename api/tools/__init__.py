"""Tool calls: how models write them, as structural tags, and what their texts say."""
