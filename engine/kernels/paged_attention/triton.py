"""Paged attention on a GPU: decoding rows, extensions and prompts in one launch, straight from the blocks.

A program takes a tile of rows of one sequence with all query heads that share a key head, so each key is read once for all of them, and
walks over the keys with a running softmax (T. Dao et al., "FlashAttention", 2022; W. Kwon et al., "PagedAttention", 2023).

Where a sequence has few rows, its keys are divided among programs, and what they found is combined by a second kernel ("Flash-Decoding",
2023): a few long sequences would leave most of a GPU idle otherwise. The parts are equally long whatever else is in the batch, so that a
row's result does not depend on its neighbours.
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false, reportIndexIssue=false
# Triton's decorators change what a call means.

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from .layout import AttentionBatch, AttentionScale, LayerCache, Span

_LEAST_DOT = 16
"""Smallest side of a matrix that the tensor cores multiply."""
_LONG = 16
"""Rows of a sequence from which tiles are large, and keys are not divided."""
SPLIT_KEYS = 512
"""Keys of one part of a sequence with few rows."""


class TileShape(NamedTuple):
    """Sizes that a kernel is compiled for; all but `block_size` are powers of two.

    Attributes:
        rows: of one sequence.
        groups: query heads of a key head, rounded up.
        keys: at a time.
        key_dim, value_dim: rounded up.
    """

    rows: int
    groups: int
    keys: int
    key_dim: int
    value_dim: int

    @staticmethod
    def of(longest: int, groups: int, key_dim: int, value_dim: int) -> TileShape:
        """For sequences of at most `longest` rows."""
        groups = triton.next_power_of_2(groups)
        widest = max(key_dim, value_dim)
        pairs = _LEAST_DOT if longest < _LONG else 64 if widest <= 64 else 32
        return TileShape(
            rows=max(1, pairs // groups),
            groups=max(groups, pairs // max(1, pairs // groups)),
            keys=64 if widest <= 64 else 32 if widest <= 128 and longest >= _LONG else 16,
            key_dim=max(_LEAST_DOT, triton.next_power_of_2(key_dim)),
            value_dim=max(_LEAST_DOT, triton.next_power_of_2(value_dim)),
        )

    @property
    def num_warps(self) -> int:
        """Enough that a tile's sums and addresses stay in registers."""
        return 4 if max(self.key_dim, self.value_dim) <= 128 else 8


@triton.jit
def attend_kernel(
    queries_ptr, keys_ptr, values_ptr, out_ptr, partial_ptr, logs_ptr, tables_ptr, tile_sequences_ptr, tile_rows_ptr, tile_stops_ptr,
    positions_ptr, query_row_stride, query_head_stride, table_stride, num_rows, num_kv_heads, window, scaling, softcap,
    ROWS: tl.constexpr, GROUPS: tl.constexpr, KEYS: tl.constexpr, KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    SHARERS: tl.constexpr, KEY_WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    HAS_SOFTCAP: tl.constexpr, DOT: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """One tile: rows `tile_rows .. tile_stops - 1` at most, and one key head with the SHARERS query heads that use it.

    With SPLIT > 0 it sees only SPLIT keys, a multiple of KEYS, and writes what it found to `partial` [splits, num_rows, H, Dv] and the
    logarithms of the sums of its weights to `logs` [splits, num_rows, H]; otherwise the result to `out`.
    """
    tile, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first_row, stop_row = tl.load(tile_rows_ptr + tile), tl.load(tile_stops_ptr + tile)
    table = tables_ptr + tl.load(tile_sequences_ptr + tile).to(tl.int64) * table_stride

    pairs = tl.arange(0, ROWS * GROUPS)
    rows, group = first_row + pairs // GROUPS, pairs % GROUPS
    inside = (rows < stop_row) & (group < SHARERS)
    heads = kv_head * SHARERS + group
    positions = tl.load(positions_ptr + rows, mask=inside, other=-1)
    key_dims, value_dims = tl.arange(0, KEY_DIM), tl.arange(0, VALUE_DIM)
    query_at = rows.to(tl.int64)[:, None] * query_row_stride + heads[:, None] * query_head_stride + key_dims[None, :]
    queries = tl.load(queries_ptr + query_at, mask=inside[:, None] & (key_dims < KEY_WIDTH)[None, :], other=0.0).to(DOT)

    highest = tl.full((ROWS * GROUPS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS * GROUPS,), tl.float32)
    summed = tl.zeros((ROWS * GROUPS, VALUE_DIM), tl.float32)
    # Rows of a tile stand one behind the other, so that the first has the lowest position and the last the highest.
    last_position = tl.max(positions)
    first_position = tl.load(positions_ptr + first_row)
    start = tl.maximum(0, first_position + 1 - window) // KEYS * KEYS
    stop = last_position + 1
    if SPLIT > 0:
        start, stop = tl.maximum(start, split * SPLIT), tl.minimum(stop, (split + 1) * SPLIT)
    for first_key in range(start, stop, KEYS):
        slots = first_key + tl.arange(0, KEYS)
        known = slots <= last_position
        blocks = tl.load(table + slots // BLOCK_SIZE, mask=known, other=0).to(tl.int64)
        places = (blocks * num_kv_heads + kv_head) * BLOCK_SIZE + slots % BLOCK_SIZE
        key_at = places[None, :] * KEY_WIDTH + key_dims[:, None]
        keys = tl.load(keys_ptr + key_at, mask=known[None, :] & (key_dims < KEY_WIDTH)[:, None], other=0.0)
        scores = tl.dot(queries, keys.to(DOT), input_precision="ieee") * scaling
        if HAS_SOFTCAP:
            scores = softcap * (2.0 * tl.sigmoid(2.0 * (scores / softcap)) - 1.0)
        seen = (slots[None, :] <= positions[:, None]) & (slots[None, :] > positions[:, None] - window)
        scores = tl.where(seen, scores, float("-inf"))
        best = tl.maximum(highest, tl.max(scores, 1))
        # A row that has seen no key yet has no highest score; any finite number keeps its weights at 0.
        base = tl.where(best == float("-inf"), 0.0, best)
        weights = tl.exp(scores - base[:, None])
        shrink = tl.exp(highest - base)
        highest = best
        total = total * shrink + tl.sum(weights, 1)
        value_at = places[:, None] * VALUE_WIDTH + value_dims[None, :]
        values = tl.load(values_ptr + value_at, mask=known[:, None] & (value_dims < VALUE_WIDTH)[None, :], other=0.0)
        summed = summed * shrink[:, None] + tl.dot(weights.to(DOT), values.to(DOT), input_precision="ieee")

    stored = inside[:, None] & (value_dims < VALUE_WIDTH)[None, :]
    if SPLIT > 0:
        pair = (split.to(tl.int64) * num_rows + rows) * (num_kv_heads * SHARERS) + heads
        found = tl.where(total > 0, total, 1.0)
        tl.store(partial_ptr + pair[:, None] * VALUE_WIDTH + value_dims[None, :], summed / found[:, None], mask=stored)
        tl.store(logs_ptr + pair, tl.where(total > 0, highest + tl.log(found), float("-inf")), mask=inside)
    else:
        pair = rows.to(tl.int64) * (num_kv_heads * SHARERS) + heads
        result = (summed / total[:, None]).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + pair[:, None] * VALUE_WIDTH + value_dims[None, :], result, mask=stored)


@triton.jit
def combine_kernel(
    partial_ptr, logs_ptr, out_ptr, num_splits, num_pairs, SPLITS: tl.constexpr, VALUE_DIM: tl.constexpr, VALUE_WIDTH: tl.constexpr
):
    """One row and head: the parts of its sequence, each with the weight of its keys."""
    pair = tl.program_id(0).to(tl.int64)
    splits, dims = tl.arange(0, SPLITS), tl.arange(0, VALUE_DIM)
    places = splits.to(tl.int64) * num_pairs + pair
    logs = tl.load(logs_ptr + places, mask=splits < num_splits, other=float("-inf"))
    # Not a number stays one: a maximum would drop it.
    weights = tl.exp(logs - tl.max(logs, 0))
    inside = (splits < num_splits)[:, None] & (dims < VALUE_WIDTH)[None, :]
    parts = tl.load(partial_ptr + places[:, None] * VALUE_WIDTH + dims[None, :], mask=inside, other=0.0)
    result = tl.sum(parts * weights[:, None], 0) / tl.sum(weights, 0)
    tl.store(out_ptr + pair * VALUE_WIDTH + dims, result.to(out_ptr.dtype.element_ty), mask=dims < VALUE_WIDTH)


@triton.jit
def write_kernel(
    new_ptr, cache_ptr, tables_ptr, row_sequences_ptr, positions_ptr, row_stride, head_stride, table_stride, num_kv_heads, dim, block_size,
    DIM: tl.constexpr,
):  # fmt: skip
    """Stores one head of one row."""
    row, head = tl.program_id(0), tl.program_id(1)
    position = tl.load(positions_ptr + row)
    table = tables_ptr + tl.load(row_sequences_ptr + row).to(tl.int64) * table_stride
    block = tl.load(table + position // block_size).to(tl.int64)
    dims = tl.arange(0, DIM)
    new = tl.load(new_ptr + row.to(tl.int64) * row_stride + head * head_stride + dims, mask=dims < dim)
    place = (block * num_kv_heads + head) * block_size + position % block_size
    tl.store(cache_ptr + place * dim + dims, new.to(cache_ptr.dtype.element_ty), mask=dims < dim)


def attend(queries: torch.Tensor, cache: LayerCache, batch: AttentionBatch, scale: AttentionScale) -> torch.Tensor:
    """Attention of queries [T, H, D] over the cache -> [T, H, Dv] in the dtype of the queries."""
    queries = queries if queries.stride(2) == 1 else queries.contiguous()
    out = torch.empty(*queries.shape[:2], cache.values.shape[3], dtype=queries.dtype, device=queries.device)
    stored = queries.to(cache.keys.dtype)
    num_short = bisect_left(batch.spans, _LONG, key=lambda span: span.num_rows)  # they are ordered by length
    short, long = batch.spans[:num_short], batch.spans[num_short:]
    if short:
        num_splits = triton.cdiv(max(span.num_keys for span in short), SPLIT_KEYS)
        _attend(stored, out, cache, batch, scale, short, num_splits)
    if long:
        _attend(stored, out, cache, batch, scale, long, 1)
    return out


def _attend(
    queries: torch.Tensor,
    out: torch.Tensor,
    cache: LayerCache,
    batch: AttentionBatch,
    scale: AttentionScale,
    spans: tuple[Span, ...],
    num_splits: int,
) -> None:
    """Attention of the rows of some spans, which stand one behind the other."""
    _, num_heads, key_dim = queries.shape
    _, num_kv_heads, block_size, value_dim = cache.values.shape
    groups = num_heads // num_kv_heads
    shape = TileShape.of(spans[-1].num_rows, groups, key_dim, value_dim)
    tiles = _tiles(batch, spans, shape.rows)
    num_rows = spans[-1].row_stop
    partial = logs = out
    if num_splits > 1:
        partial = torch.empty(num_splits, num_rows, num_heads, value_dim, dtype=torch.float32, device=out.device)
        logs = torch.empty(num_splits, num_rows, num_heads, dtype=torch.float32, device=out.device)
    attend_kernel[(tiles.shape[1], num_kv_heads, num_splits)](
        queries, cache.keys, cache.values, out, partial, logs, batch.block_tables, tiles[0], tiles[1], tiles[2], batch.positions,
        queries.stride(0), queries.stride(1), batch.block_tables.stride(0), num_rows, num_kv_heads,
        scale.window, scale.scaling, scale.softcap or 1.0,
        ROWS=shape.rows, GROUPS=shape.groups, KEYS=shape.keys, KEY_DIM=shape.key_dim, VALUE_DIM=shape.value_dim,
        SHARERS=groups, KEY_WIDTH=key_dim, VALUE_WIDTH=value_dim, BLOCK_SIZE=block_size,
        HAS_SOFTCAP=scale.softcap is not None, DOT=_dot_type(cache.keys.dtype), SPLIT=SPLIT_KEYS if num_splits > 1 else 0,
        num_warps=shape.num_warps,
    )  # fmt: skip
    if num_splits > 1:
        # Spans with few rows are the first of a batch.
        combine_kernel[(num_rows * num_heads,)](
            partial, logs, out, num_splits, num_rows * num_heads,
            SPLITS=triton.next_power_of_2(num_splits), VALUE_DIM=shape.value_dim, VALUE_WIDTH=value_dim, num_warps=4,
        )  # fmt: skip


def _dot_type(stored: torch.dtype) -> tl.dtype:
    """In what products are formed, always summed in float32. The interpreter would multiply the bits of bfloat16."""
    if isinstance(attend_kernel, InterpretedFunction) or stored == torch.float32:
        return tl.float32
    return tl.bfloat16 if stored == torch.bfloat16 else tl.float16


def write(keys: torch.Tensor, values: torch.Tensor, cache: LayerCache, batch: AttentionBatch) -> None:
    """Stores keys [T, Hkv, D] and values [T, Hkv, Dv] at the rows' positions."""
    for new, stored in ((keys, cache.keys), (values, cache.values)):
        new = new if new.stride(2) == 1 else new.contiguous()
        num_rows, num_kv_heads, dim = new.shape
        write_kernel[(num_rows, num_kv_heads)](
            new, stored, batch.block_tables, batch.row_sequences, batch.positions, new.stride(0), new.stride(1),
            batch.block_tables.stride(0), num_kv_heads, dim, cache.block_size,
            DIM=triton.next_power_of_2(dim), num_warps=1,
        )  # fmt: skip


def _tiles(batch: AttentionBatch, spans: tuple[Span, ...], num_rows: int) -> torch.Tensor:
    """Sequence, first row and end of each tile of at most so many rows: [3, N] int32, the same for all layers of a step."""
    key = (spans[0].row_start, num_rows)
    tiles = batch.tiles.get(key)
    if tiles is None:
        cut = [(span.sequence, row, span.row_stop) for span in spans for row in range(span.row_start, span.row_stop, num_rows)]
        # The end of a tile is that of its sequence at the latest.
        columns = [(sequence, row, min(row + num_rows, stop)) for sequence, row, stop in cut]
        tiles = torch.tensor(columns, dtype=torch.int32).t().contiguous().to(batch.positions.device)
        batch.tiles[key] = tiles
    return tiles
