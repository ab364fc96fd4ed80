"""What can come after each terminal of a grammar: FIRST and FOLLOW sets (Aho, Sethi and Ullman, 1986), as bit sets of terminals."""

from __future__ import annotations

from ..cancellation import check
from .numbered import NumberedGrammar, Production


def following_terminals(grammar: NumberedGrammar) -> list[int]:
    """For each terminal the bit set of the terminals that some sentence has right after it. Cost: one union of sets for each symbol of
    the grammar."""
    rules = list(grammar.rules())
    first = _firsts(grammar, rules)
    size = grammar.num_symbols
    sets = [0] * (size + len(grammar.terminals))  # what follows nonterminals, then terminals
    edges: list[list[int]] = [[] for _ in sets]
    for head, body, repeated in rules:
        check()
        after = first[head] if repeated else 0
        at_end = True  # what follows the head may follow here
        for symbol in reversed(body):
            place = symbol if symbol >= 0 else size + ~symbol
            sets[place] |= after
            if at_end:
                edges[place].append(head)
            begins = first[symbol] if symbol >= 0 else 1 << ~symbol
            if grammar.nullable(symbol):
                after |= begins
            else:
                after, at_end = begins, False
    unite_reachable(sets, edges)
    return sets[size:]


def _firsts(grammar: NumberedGrammar, rules: list[tuple[int, Production, bool]]) -> list[int]:
    """For each nonterminal the terminals that it can begin with."""
    sets = [0] * grammar.num_symbols
    edges: list[list[int]] = [[] for _ in sets]
    for head, body, _ in rules:
        check()
        for symbol in body:
            if symbol < 0:
                sets[head] |= 1 << ~symbol
            else:
                edges[head].append(symbol)
            if not grammar.nullable(symbol):
                break
    unite_reachable(sets, edges)
    return sets


def unite_reachable(sets: list[int], edges: list[list[int]]) -> None:
    """Adds to the set of each node those of all nodes that edges lead to, directly or not: node by node, and cycle by cycle (Tarjan, 1972;
    DeRemer and Pennello, 1982)."""
    done = len(sets) + 1
    ranks = [0] * len(sets)  # 0 before a visit, `done` after it, else the lowest place in `path` that is known to be reached
    path: list[int] = []
    for root in range(len(sets)):
        if ranks[root]:
            continue
        path.append(root)
        ranks[root] = len(path)
        visits = [(root, len(path), iter(edges[root]))]
        while visits:
            node, place, others = visits[-1]
            for other in others:
                if ranks[other] == 0:
                    path.append(other)
                    ranks[other] = len(path)
                    visits.append((other, len(path), iter(edges[other])))
                    break
                ranks[node] = min(ranks[node], ranks[other])
                sets[node] |= sets[other]
            else:
                visits.pop()
                if ranks[node] == place:  # it and what comes after it in the path reach one another
                    for member in path[place - 1 :]:
                        ranks[member] = done
                        sets[member] = sets[node]
                    del path[place - 1 :]
                if visits:
                    above = visits[-1][0]
                    ranks[above] = min(ranks[above], ranks[node])
                    sets[above] |= sets[node]
