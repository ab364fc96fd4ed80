"""Memory for the nodes of machines is used again, and none of it twice at a time."""

from __future__ import annotations

import gc

import numpy as np

from formcast.grammar.machine import Machine
from formcast.grammar.machine_layout import LEAF, NIL
from formcast.grammar.node_memory import FIRST_NODES, KEPT_NODES


def overlap(machines: list[Machine]) -> bool:
    return any(np.shares_memory(a.nodes, b.nodes) for i, a in enumerate(machines) for b in machines[:i])


def test_machines_have_memory_of_their_own() -> None:
    machines = [Machine() for _ in range(40)]
    assert not overlap(machines)
    del machines[::2]
    gc.collect()
    machines += [Machine() for _ in range(20)]
    assert not overlap(machines)
    assert all(machine.nodes.shape[0] == FIRST_NODES and machine.num_nodes == 1 for machine in machines)


def test_nodes_of_a_machine_before_are_not_those_of_the_next() -> None:
    for count in (3 * KEPT_NODES, 10, FIRST_NODES + 10):  # the last one has to grow
        machine = Machine()
        made = [machine.node(LEAF, row, 0, 0, NIL) for row in range(count)]
        assert made == list(range(1, count + 1))
        assert machine.nodes[made, 1].tolist() == list(range(count))
        del machine
        gc.collect()
