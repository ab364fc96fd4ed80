"""The store of arrays: damage, rivals, kill -9, and places that cannot be written."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from toy_vocabulary import mask_of, vocabulary

from formcast import Grammar, Vocabulary, compile_grammar, fsm_cache
from formcast.fsm_cache import ArrayStore
from formcast.fsm_cache.trie import Trie

ARRAYS = {"a": np.arange(12, dtype=np.int32).reshape(3, 4), "b": np.zeros(0, np.int16), "c": np.array([7], np.int64)}


def _same(left: dict[str, np.ndarray] | None, right: dict[str, np.ndarray]) -> bool:
    return (
        left is not None
        and left.keys() == right.keys()
        and all(np.array_equal(left[name], right[name]) and left[name].dtype == right[name].dtype for name in right)
    )


def _only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_was_put_is_there_for_others_and_may_be_written_to(tmp_path):
    ArrayStore(tmp_path / "new" / "folder").put("key", ARRAYS)
    found = ArrayStore(tmp_path / "new" / "folder").get("key")
    assert found is not None and _same(found, ARRAYS)
    found["a"][0, 0] = 99
    assert _same(ArrayStore(tmp_path / "new" / "folder").get("key"), ARRAYS)
    assert ArrayStore(tmp_path / "new" / "folder").get("other key") is None


def test_every_flipped_byte_and_every_truncation_is_noticed(tmp_path):
    store = ArrayStore(tmp_path)
    store.put("key", ARRAYS)
    path = _only_file(tmp_path)
    whole = path.read_bytes()
    for index in range(len(whole)):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 0x10]) + whole[index + 1 :])
        assert store.get("key") is None
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        assert store.get("key") is None
    path.write_bytes(whole + b"\0")
    assert store.get("key") is None
    path.write_bytes(whole)
    assert _same(store.get("key"), ARRAYS)


def test_damage_is_logged_once_and_written_over(tmp_path, caplog):
    store = ArrayStore(tmp_path)
    store.put("key", ARRAYS)
    path = _only_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING):
        assert store.get("key") is None and store.get("key") is None
    assert len(caplog.records) == 1 and str(path) in caplog.text
    store.put("key", ARRAYS)
    assert _same(store.get("key"), ARRAYS)


def test_a_whole_file_of_another_key_or_version_is_refused(tmp_path):
    store = ArrayStore(tmp_path)
    store.put("version 1", ARRAYS)
    old = _only_file(tmp_path)
    store.put("version 2", {"a": np.ones(1, np.int32)})
    (new,) = set(tmp_path.iterdir()) - {old}
    os.replace(old, new)
    assert store.get("version 2") is None


def test_files_used_longest_ago_make_room(tmp_path):
    arrays = {"a": np.zeros(1000, np.int32)}
    store = ArrayStore(tmp_path, max_bytes=13_500)  # room for three
    for age, key in enumerate("abc"):
        store.put(key, arrays)
        (path,) = (path for path in tmp_path.iterdir() if path.stat().st_mtime > time.time() - 50)
        os.utime(path, (100 + age, 100 + age))
    assert store.get("a") is not None  # used now
    store.put("d", arrays)
    assert [key for key in "abcd" if ArrayStore(tmp_path).get(key) is not None] == ["a", "c", "d"]
    store.put("too large", {"a": np.zeros(10_000, np.int32)})
    assert store.get("too large") is None and store.get("d") is not None


@pytest.mark.parametrize("place", ["a file", "/proc/formcast"])
def test_a_place_that_cannot_be_written_is_logged_once(place, tmp_path, caplog):
    (tmp_path / "a file").write_text("")
    store = ArrayStore(tmp_path / place / "below")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            store.put("key", ARRAYS)
            assert store.get("key") is None
    assert sum("cannot be kept" in record.message for record in caplog.records) == 1


_BIG = "{'a': np.full(200_000, value, np.int32)}"
_SCRIPT = """
import resource, sys
import numpy as np
sys.path.insert(0, sys.argv[1])  # the module alone: nothing else of the package is loaded, which would take longer than the test
from store import ArrayStore
store = ArrayStore(sys.argv[2])
"""


def _start(code: str, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT + code, str(Path(fsm_cache.__file__).parent), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen) -> str:
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    code = f"""
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # writing on is an OSError, as on a full disk
value = 1
store.put("key", {_BIG})
print(store.get("key"))
"""
    assert _finish(_start(code, tmp_path)).strip() == "None"
    assert list(tmp_path.iterdir()) == []


def test_writers_at_the_same_time_do_not_mix(tmp_path):
    code = f"""
value = int(sys.argv[3])
for _ in range(12):
    store.put("key", {_BIG})
    found = store.get("key")["a"]
    assert len(found) == 200_000 and (found == found[0]).all()
"""
    for writer in [_start(code, tmp_path, value) for value in (1, 2)]:
        _finish(writer)
    assert len(list(tmp_path.iterdir())) == 1


def test_kill_9_in_the_middle_of_writing(tmp_path):
    code = f"""
print("ready", flush=True)
value = 0
while True:
    value += 1
    store.put("key", {_BIG})
"""
    for _ in range(2):
        writer = _start(code, tmp_path)
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        while not _is_writing(tmp_path):
            assert time.monotonic() < deadline
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        found = ArrayStore(tmp_path).get("key")
        assert found is None or (len(found["a"]) == 200_000 and (found["a"] == found["a"][0]).all())
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))  # long ago
    ArrayStore(tmp_path).put("another key", ARRAYS)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".unfinished"]


def _is_writing(folder: Path) -> bool:
    """Whether a file is half written."""
    for path in folder.glob("*.unfinished"):
        with suppress(FileNotFoundError):
            if path.stat().st_size:
                return True
    return False


def test_a_vocabulary_from_the_store_makes_the_same_masks(tmp_path):
    plain = vocabulary()
    tokens, eos = plain.token_bytes, plain.eos_token_ids

    def stored(tokens=tokens) -> Vocabulary:
        return Vocabulary(tokens, eos, store=ArrayStore(tmp_path))

    made, read = stored(), stored()
    for field in ("nodes", "same", "subtrees", "order", "max_depth"):
        assert np.array_equal(getattr(made.trie, field), getattr(plain.trie, field))
        assert np.array_equal(getattr(read.trie, field), getattr(plain.trie, field))
    assert len(list(tmp_path.iterdir())) == 1
    grammar = Grammar.json_schema({"type": "object", "properties": {"ab": {"type": "string", "maxLength": 3}}})
    assert mask_of(compile_grammar(grammar, read).cursor()) == mask_of(compile_grammar(grammar, plain).cursor())
    other = stored(tuple(b"zz" if data == b"null" else data for data in tokens))  # one token differs
    assert isinstance(other.trie, Trie) and not np.array_equal(other.trie.nodes, plain.trie.nodes)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_trie_is_made_anew(tmp_path):
    plain = vocabulary()
    for _ in range(2):
        trie = Vocabulary(plain.token_bytes, plain.eos_token_ids, store=ArrayStore(tmp_path)).trie
        assert np.array_equal(trie.nodes, plain.trie.nodes) and np.array_equal(trie.order, plain.trie.order)
        path = _only_file(tmp_path)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
