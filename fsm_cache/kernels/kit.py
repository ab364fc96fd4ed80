"""What mask kernels are given: int64 arrays of addresses and sizes, made in Python.

- trie: one `Trie`.
- strings: one `StringTables`.
- kit: a vocabulary, and the working memory of one thread.
- book: what one token FSM knows: tables of the leaves it met, and tokens that close strings.
"""

from __future__ import annotations

from ...grammar.machine_layout import MAX_ROWS

# --- trie: its arrays, the number of its nodes and of its tokens, and int32 [256, 2]: what begins with each byte
TRIE_NODES, TRIE_SAME, TRIE_SUBTREES, TRIE_ORDER, TRIE_LENGTH, TRIE_TOKENS, TRIE_FIRST, TRIE_SIZE = range(8)

# --- strings: closers and their number, the closable row, int64 [longest + 1]: addresses of the plain rows by room (0: not made),
# --- the longest token in characters, and int16 [V]: lengths of tokens
CLOSERS, NUM_CLOSERS, CLOSABLE, PLAIN, LONGEST, LENGTHS, STRINGS_SIZE = range(7)

# --- kit: tries, strings (each for every spelling, then for the tidy one), end tokens, the size of the vocabulary, scratch
MAIN, SUFFIXES, CLOSING = 0, 1, 3  # numbers of tries; SUFFIXES and CLOSING: plus 1 for tidy strings
NUM_TRIES = 5
STRINGS = NUM_TRIES
EOS, NUM_EOS, VOCABULARY, PATH, OUT, FOUND, STATUS, DROPPED_MARKS, TASKS, SEEN, BASES, INFO, KIT_SIZE = range(STRINGS + 2, STRINGS + 15)

# --- status: int32, between the calls that make one mask
POSITION = 0  # trie node at which a walk was interrupted
COUNT = 1  # tokens found
DROPPED = 2  # tokens dropped
ANSWERED, ANSWERED_AT = 3, 4  # see `walk.walk`
DEPTH = 5  # tasks
NUM_SEEN = 6  # nodes whose tokens are added, or will be by a task
NUM_BASES = 7  # rows whose bits are in the mask
MARK = 8  # where the tokens that close a string begin in those found, while they are being found; else -1
DOUBTED = 9  # set in Python: some of these depend on recorded text
STATE = 10  # whose mask it is
MAY_END = 11  # answered at the end: the text may end
ASKED_A, ASKED_B = 12, 13  # what a code of `collect` asks for
STATUS_SIZE = 14

# --- leaf: a row (or 0) and ids, exits (see `LeafTable`), or instead of them ids of tokens that go on after the closing
# --- quote of a string (their number is -1 where there are exits), and whether that string is a tidy one
# --- of a key: ids of tokens that end it, and whether some row below may be left to a bounded number of keys
LEAF_BASE, LEAF_IDS, LEAF_NUM_IDS, LEAF_EXITS, LEAF_NUM_EXITS, LEAF_CLOSING, LEAF_NUM_CLOSING, LEAF_TIDY = range(8)
EXIT_SIZE = 3
# --- of a counted string: the most characters that any token needs in order to fit, all ids by what they need, what each needs, and
# --- what each exit needs
LEAF_ENDERS, LEAF_NUM_ENDERS, LEAF_BOUNDED, LEAF_MOST, LEAF_ALL, LEAF_NUM_ALL, LEAF_NEEDS, LEAF_EXIT_NEEDS = range(8, 16)

# --- book: hash tables (a power of two of slots, less one is the mask), and an arena of token ids
BOOK_LEAVES, BOOK_LEAVES_MASK = 0, 1
# int64 [slots, 2]: row or -1, address of its leaf. A key has a leaf for each class of undeclared keys: row + (class + 1) * CLASS_STRIDE
CLASS_STRIDE = MAX_ROWS
BOOK_CLOSINGS, BOOK_CLOSINGS_MASK, BOOK_NUM_CLOSINGS = 2, 3, 4  # int32 [slots, 3]: key or -1, offset, number
WALKED = 2
KEYS = 4  # a key: KEYS * state + tidy for what closes a string before that state, KEYS * state + WALKED for what may follow the state
BOOK_ARENA, BOOK_ARENA_SIZE, BOOK_ARENA_USED = 5, 6, 7
BOOK_SIZE = 8
