"""The step of the lazy automaton, in numba: `state, byte -> state`.

Everything that runs once per byte is here; everything that runs once per schema node is in Python (`machine.Machine`),
which a kernel asks for by returning NEED. No function recurses, and each has an explicit signature, so that
the compiled code is cached once. See `machine_layout` for the memory and `docs/architecture.md` for the idea.
"""
