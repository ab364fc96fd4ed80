"""Constants shared by the numba kernels and the Python side of the lazy automaton.

Memory is five int32 arrays:

    nodes [N, 6]     hash-consed nodes: kind, a, b, c, parent, next in hash chain. A state *is* a node id.
    buckets [H]      heads of the hash chains (H is a power of two), -1 when empty
    rows [R, ROW]    byte transitions of leaf automata, 256 targets and some columns; shared by all grammars (`row_store`)
    table [T]        value tables, frames and transitions, bump allocated by Python
    header [.]       counters and the request a kernel makes to Python

A node is a continuation: `parent` is what happens after it. `step` answers a state, DEAD, or one of the codes below.
"""

from __future__ import annotations

# --- results of a step -------------------------------------------------------------------------------------------
DEAD = -1
NEED = -2  # Python must expand something: header[H_NEED], header[H_NEED_A], header[H_NEED_B]
GROW = -3  # `nodes` is full
MARKED = -4  # a run stopped where a mark can be passed
DOUBT = -5  # while masking: what follows depends on text that only Python can read; header[H_NEED_A] is the question, if it is one

# --- header ------------------------------------------------------------------------------------------------------
H_NODES = 0
H_NEED = 1
H_NEED_A = 2
H_NEED_B = 3
H_NODE_CAPACITY = 4
H_BUCKET_MASK = 5
H_TRANSITION_MASK = 6
H_POSITION = 7  # where `run` was interrupted, and in which state
H_STATE = 8
H_TEXT = 9  # the text recorded when `run` stopped, and how many of its bytes that text holds
H_START = 10
H_STEP, H_EITHER = 12, 14  # addresses of code, two ints each, see `kernels.far`
HEADER_SIZE = 16

NEED_ROW = 1  # a: row
NEED_VALUE = 2  # a: value id
NEED_FRAME = 3  # a: frame id
NEED_TRANSITION = 4  # a: frame id, b: outcome
NEED_ESCAPE = 5  # a: offset of a trie node of names
NEED_TEXT = 6  # the bytes read since header[H_START] as a TEXT node
NEED_GUARD = 7  # whether the recorded text goes on behind a bracket that opened a GUARD; a: state before the bracket, b: the bracket
NEED_AHEAD = 8  # where a run leads. a: row, b: characters

# --- nodes -------------------------------------------------------------------------------------------------------
NODE = 6
NODE_RESERVE = 16  # nodes that anything but a step can make
KIND, A, B, C, PARENT, NEXT = range(6)

NIL = 0  # end of lists
END = 1  # document complete; b: whitespace row
LEAF = 2  # a: row
COUNTED = 3  # a: row of a counted string, b: characters so far, c: offset of (min, max, first row) in table
VALUE = 4  # a: value id, b: whitespace row
ARRAY_OPEN = 5  # after '['; a: frame, b: whitespace row
ARRAY_AFTER = 6  # after an item; a: frame, b: whitespace row, c: distinct items seen (under uniqueItems)
OBJECT_OPEN = 7  # after '{'; a: frame, b: whitespace row, c: extra keys seen
OBJECT_AFTER = 8  # after a member; a: frame, b: whitespace row, c: extra keys seen
OBJECT_COMMA = 9  # after ','; a: frame, b: whitespace row, c: extra keys seen
KEY = 10  # inside a key; a: row, b: decoded text so far (CHAR list) or OFF, c: raw bytes of an open escape (CHAR list)
#           parent: OBJECT_AFTER, or ARRAY_AFTER or GUARD for a string that must differ from those listed there
COLON = 11  # after a key; a: outcome, b: whitespace row; parent: OBJECT_AFTER holding the frame before this key
CHAR = 12  # list of bytes; a: byte, parent: list
EXTRA = 13  # list of extra keys, or of distinct items; a: CHAR list, b: class of the key, parent: list
SET = 14  # union of states; a: member, parent: SET or NIL; members in the order of `kernels.unions.compare`
POSITION = 15  # a place in a context-free grammar; a: value id. Nothing of it is read yet, and something of it must be
ITEM = 16  # number or literal that must differ from the items seen; a: row, b: text so far (CHAR list) or OFF; parent: ARRAY_AFTER
NAME = 17  # inside a key that so far begins declared names; a: trie node (offset in table), b: as KEY.b, c: row of the same key as an
#            undeclared one, -1 where it cannot be one; parent: OBJECT_AFTER. Bytes so far are raw: escapes lead to a KEY
FORK = 18  # one of several continuations, nothing of it read yet; a: value id
SWITCH = 19  # leaf that says what it read: a row with F_KEY_END leads to the fork OUTCOME. a: row,
#              b: 1 once something was read in the token that is being read, c: tokens left to read (0: no bound)
FEW_TOKENS = 3  # with so few left, a token may not leave a character unfinished that they might not suffice for: 3 bytes at most
MARK = 20  # reads nothing; says to a parser of the output that the text got here. a: number of the mark
GUARD = 21  # passes on to its parent. Around a string: c: texts that it must not be. Around an array or object: its text is recorded
RECORD = 22  # a state below a GUARD; a: the state, b: text read since the outermost GUARD opened (TEXT)
TEXT = 23  # recorded text; a: id of its last bytes, or of the bracket it begins behind (parent NIL), parent: the text before
ASK = 24  # after a value on which the frame depends; a: question id (a frame), b: whitespace row, c: extra keys seen
FRESH = 25  # while masking: before an item that must differ from items not known; b: whitespace row
UNION = 31  # no state: remembers that the union of a and b is the parent; a < b

STALE = -2  # the text of a step that is not recorded yet
OFF = -1  # no text. KEY.b while a mask is being made: the text is no prefix of an extra key seen

# --- rows --------------------------------------------------------------------------------------------------------
ROW = 268
MAX_ROWS = 1 << 20
FLAGS = 256  # column of the flags below
KEY_LO = 257  # declared keys that a key row can still become, in sorted order: [KEY_LO, KEY_HI)
KEY_HI = 258
KEY_CLASSES = 259  # bit set of classes of undeclared keys that can still be reached
KEY_TAILS = 260  # undeclared keys that can still be reached: a count, 0: unbounded, -1: every string
OUTCOME = 261  # outcome of a row that ends a key
KEY_SET = 266  # table offset of a bit set of the declared keys in [KEY_LO, KEY_HI) where not all of them can be reached, else 0
ROW_SERIAL = 267  # differs between the uses of one row
LOOP = 262  # set of ASCII bytes that lead from the row back to itself, 4 words; with F_LOOPS

RUN = KEY_LO  # of leaf rows with F_RUN: how many characters of LOOP can come one after another at least
OTHER = KEY_HI  # of leaf rows with F_OTHERS: set of the other ASCII bytes that may come in the run after its first byte, 4 words
AHEAD = 266  # of leaf rows with F_EVEN: the row in whose column n stands the row after n characters of the run, where it is made; else 0
MAX_RUN = 255
LEAST = 266  # of rows of counted strings: how many characters must still come, that which was begun included

FINAL_ROW = 0  # a target with this id: the leaf is complete, continue with the parent

F_EXPANDED = 1
F_ACCEPT = 2  # the leaf may end here (numbers, regexes, whitespace)
F_BOUNDARY = 4  # between two characters of a string
F_KEY_END = 8  # the key is complete: OUTCOME says which
F_ESCAPE = 16  # inside a JSON escape
F_LOOPS = 64  # some ASCII byte leads back to the row
F_TEXT_LOOP = 128  # and so does every character beyond ASCII
F_PLAIN = 32  # between two characters, and every further character may follow
F_RUN = 512  # the bytes of LOOP lead to other rows, from which as many more of them can come as RUN says
F_OTHERS = 1024  # after the first byte of the run of F_RUN and within it, no ASCII bytes but those of LOOP and OTHER may come, and others
#                  only with F_TEXT_LOOP
F_EVEN = 2048  # all bytes of the run lead to the same rows
F_RUN_ENDS = 4096  # the leaf may end after each character of the run
F_COUNTED = 8192  # of a string that is counted: see LEAST
F_TIDY = 256  # a JSON string in which printable ASCII is never escaped

# Outcomes: declared key i (sorted order) is i, class j of undeclared keys is CLASS_BASE + j.
CLASS_BASE = 1 << 24

# --- value table ---------------------------------------------------------------------------------------------------
# [scalar row, counted bounds offset, distinct string row, distinct raw row (each -1 if absent), texts the distinct string must
#  not be (EXTRA list, -1: its siblings), objects, arrays, frames of the objects, frames of the arrays]
# A frame f that is to be recorded is written ~f; so is a question that takes the place of a next frame.
V_SCALAR, V_COUNTED, V_DISTINCT_STRING, V_DISTINCT_RAW, V_UNLIKE, V_OBJECTS, V_ARRAYS, V_LIST = range(8)

# --- position table: [alternatives, then for each: row of its terminal, count, positions to push (inner first)], where a
# --- position is 2 * value id + 1 if it may read nothing
P_ALTERNATIVES, P_LIST = range(2)

# --- fork table: [alternatives, then for each: count, nodes to push (inner first) as kind, a, b, c] --------------------------

# --- frames ------------------------------------------------------------------------------------------------------
# object: [can close, key row, allowed classes, offset of allowed words, trie of declared names or -1]
#         With a trie, the key row is that of undeclared names (class 0, every name), or -1.
# array:  [can close, alternatives, (value id or UNKNOWN, next frame) ...]
# question: transitions only, by text: [count, (OBJECT_AFTER or ARRAY_AFTER, frame) ...]
FR_CLOSE, FR_KEY_ROW, FR_CLASSES, FR_WORDS, FR_NAMES = range(5)
FR_ALTERNATIVES, FR_LIST = 1, 2
UNKNOWN = -1  # the value of an item that must differ from items not known

# --- trie of declared names, by raw UTF-8 bytes, depth first ----------------------------------------------------------
# [byte, ints in the subtree, range of names below (lo, hi), outcome of ending here or -1, row after a backslash, bytes above]
# The row is 0 where no name goes on with an escape, and -1 - owner while it is not made.
NAME_BYTE, NAME_SIZE, NAME_LO, NAME_HI, NAME_OUTCOME, NAME_ESCAPE, NAME_DEPTH, NAME_NODE = range(8)

# rows of whitespace, and of any string, live in table[0:8]
WS_OUTER_BEFORE, WS_OUTER_AFTER, WS_OPEN, WS_AFTER_VALUE, WS_AFTER_COMMA, WS_BEFORE_COLON, WS_AFTER_COLON = range(7)
GENERIC_STRING, SETTINGS_SIZE = 7, 8
