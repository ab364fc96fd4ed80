"""Text that a state carries, and escapes within it."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import kernel
from ..machine_layout import CHAR, NIL, NODE, PARENT, A, B
from .memory import P, i4
from .nodes import make_node


@kernel(i4(i4))
def hex_value(byte):
    if byte <= 57:
        return byte - 48
    return (byte & 0xDF) - 55


@kernel(i4(P, i4, i4, i4))
def escape_unit(nodes, raw, last, skip):
    """The UTF-16 unit of the four hex digits that end `skip` bytes before `last`, newest first."""
    value = np.int32(0)
    shift = np.int32(0)
    byte = last
    at = raw
    for _ in range(skip):
        byte = nodes[at * NODE + A]
        at = nodes[at * NODE + PARENT]
    for _ in range(4):
        value |= hex_value(byte) << shift
        shift += 4
        byte = nodes[at * NODE + A]
        at = nodes[at * NODE + PARENT]
    return value


@kernel(i4(P, P, P, i4, i4, i4), apart=True)
def append_decoded(nodes, buckets, header, text, raw, byte):
    """`text` followed by the character that the escape `raw` + `byte` spells, as UTF-8 bytes."""
    length = np.int32(1)
    at = raw
    while at != NIL:
        length += 1
        at = nodes[at * NODE + PARENT]
    if length == 2:
        code = byte
        if byte == 98:
            code = np.int32(8)
        elif byte == 102:
            code = np.int32(12)
        elif byte == 110:
            code = np.int32(10)
        elif byte == 114:
            code = np.int32(13)
        elif byte == 116:
            code = np.int32(9)
    elif length == 6:
        code = escape_unit(nodes, raw, byte, np.int32(0))
    else:  # a surrogate pair
        low = escape_unit(nodes, raw, byte, np.int32(0))
        high = escape_unit(nodes, raw, byte, np.int32(6))
        code = np.int32(0x10000) + ((high - np.int32(0xD800)) << 10) + (low - np.int32(0xDC00))
    if code < 0x80:
        return make_node(nodes, buckets, header, CHAR, code, 0, 0, text, 1)
    if code < 0x800:
        text = make_node(nodes, buckets, header, CHAR, 0xC0 | (code >> 6), 0, 0, text, 1)
    else:
        if code < 0x10000:
            text = make_node(nodes, buckets, header, CHAR, 0xE0 | (code >> 12), 0, 0, text, 1)
        else:
            text = make_node(nodes, buckets, header, CHAR, 0xF0 | (code >> 18), 0, 0, text, 1)
            text = make_node(nodes, buckets, header, CHAR, 0x80 | ((code >> 12) & 0x3F), 0, 0, text, 1)
        text = make_node(nodes, buckets, header, CHAR, 0x80 | ((code >> 6) & 0x3F), 0, 0, text, 1)
    return make_node(nodes, buckets, header, CHAR, 0x80 | (code & 0x3F), 0, 0, text, 1)


@kernel(i4(i4, i4))
def utf16_unit(code, second):
    """First or second UTF-16 unit of a code point; -1 where it has no second one."""
    if code < 0x10000:
        return np.int32(-1) if second else code
    if second:
        return np.int32(0xDC00) + ((code - np.int32(0x10000)) & 0x3FF)
    return np.int32(0xD800) + ((code - np.int32(0x10000)) >> 10)


@kernel(i4(P, i4, i4))
def escape_fits(nodes, raw, code):
    """Whether the open escape `raw` (newest byte first) can become the character `code`."""
    length = np.int32(0)
    at = raw
    while at != NIL:
        length += 1
        at = nodes[at * NODE + PARENT]
    at = raw
    position = length - 1  # of the byte at `at`: 0 backslash, 1 u, 2-5 digits, 6 backslash, 7 u, 8-11 digits
    while at != NIL:
        second = position >= 8
        place = position - 8 if second else position - 2
        if 0 <= place < 4:
            unit = utf16_unit(code, np.int32(second))
            if unit < 0 or (unit >> (4 * (3 - place))) & 0xF != hex_value(nodes[at * NODE + A]):
                return np.int32(0)
        at = nodes[at * NODE + PARENT]
        position -= 1
    return np.int32(1)


@kernel(i4(P, i4, i4, i4))
def seen_below(nodes, extras, text, classes):
    """How many of the extra keys seen, of some `classes`, start with `text`. Lists are hash-consed, so a prefix is an ancestor."""
    count = np.int32(0)
    while extras != NIL:
        t = nodes[extras * NODE + A]
        while t != text and t != NIL:
            t = nodes[t * NODE + PARENT]
        if t == text:
            count += (classes >> nodes[extras * NODE + B]) & 1
        extras = nodes[extras * NODE + PARENT]
    return count


@kernel(i4(P, i4, i4, i4, i4))
def seen_through(nodes, extras, text, raw, classes):
    """How many of the extra keys seen, of some `classes`, continue `text` with a character that the open escape `raw` can become."""
    count = np.int32(0)
    while extras != NIL:
        t = nodes[extras * NODE + A]
        b0 = b1 = b2 = b3 = np.int32(0)  # the bytes after `text` once the walk ends there
        while t != text and t != NIL:
            b3 = b2
            b2 = b1
            b1 = b0
            b0 = nodes[t * NODE + A]
            t = nodes[t * NODE + PARENT]
        if t == text and nodes[extras * NODE + A] != text and (classes >> nodes[extras * NODE + B]) & 1:
            if b0 < 0x80:
                code = b0
            elif b0 < 0xE0:
                code = ((b0 & 0x1F) << 6) | (b1 & 0x3F)
            elif b0 < 0xF0:
                code = ((b0 & 0x0F) << 12) | ((b1 & 0x3F) << 6) | (b2 & 0x3F)
            else:
                code = ((b0 & 0x07) << 18) | ((b1 & 0x3F) << 12) | ((b2 & 0x3F) << 6) | (b3 & 0x3F)
            count += escape_fits(nodes, raw, np.int32(code))
        extras = nodes[extras * NODE + PARENT]
    return count


@kernel(i4(P, i4, i4))
def was_seen(nodes, extras, text):
    """Whether `text` is in a list of extra keys or distinct items."""
    while extras != NIL:
        if nodes[extras * NODE + A] == text:
            return np.int32(1)
        extras = nodes[extras * NODE + PARENT]
    return np.int32(0)
