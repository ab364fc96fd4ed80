"""Which nodes of a tree may read nothing."""

from __future__ import annotations

from .spec import AnyText, Node, Optional, Or, Repeat, Sequence, Tag, Text, TriggeredTags


class Emptiness:
    """Attributes:
    leaves: by id of a regex or grammar, whether it admits the empty text.
    """

    def __init__(self) -> None:
        self.leaves: dict[int, bool] = {}

    def may_be(self, node: Node) -> bool:
        """Whether a node admits the empty text."""
        if isinstance(node, Sequence):
            return all(map(self.may_be, node.elements))
        if isinstance(node, Or):
            return any(map(self.may_be, node.elements))
        if isinstance(node, Repeat):
            return node.min == 0 or self.may_be(node.content)
        if isinstance(node, Text):
            return not node.value
        if isinstance(node, Tag):
            return node.begin == "" and "" in node.end and self.may_be(node.content)
        if isinstance(node, TriggeredTags):
            return not node.at_least_one
        return isinstance(node, Optional | AnyText) or self.leaves.get(id(node), False)
