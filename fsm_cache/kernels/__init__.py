"""Masks, in numba. Each function has an explicit signature; what needs Python interrupts it with a code."""
