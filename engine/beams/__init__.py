"""Beam search: several beginnings of an answer at a time, of which the likeliest are continued."""
