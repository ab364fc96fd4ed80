"""Paged attention on a GPU: decoding rows, extensions and prompts in one launch, straight from the blocks.

A program takes a tile of rows of one sequence with all query heads that share a key head, so each key is read once for all of them, and
walks over the keys with a running softmax (T. Dao et al., "FlashAttention", 2022; W. Kwon et al., "PagedAttention", 2023).
"""

# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false, reportIndexIssue=false
# Triton's decorators change what a call means.

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from .layout import AttentionBatch, AttentionScale, LayerCache

_LEAST_DOT = 16
"""Smallest side of a matrix that the tensor cores multiply."""
_LONG = 16
"""Rows of a sequence from which tiles are large."""


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
            keys=64 if widest <= 64 else 32 if widest <= 128 else 16,
            key_dim=max(_LEAST_DOT, triton.next_power_of_2(key_dim)),
            value_dim=max(_LEAST_DOT, triton.next_power_of_2(value_dim)),
        )

    @property
    def num_warps(self) -> int:
        """Enough that a tile's sums and addresses stay in registers."""
        return 4 if max(self.key_dim, self.value_dim) <= 128 else 8


@triton.jit
def attend_kernel(
    queries_ptr, keys_ptr, values_ptr, out_ptr, tables_ptr, tile_sequences_ptr, tile_rows_ptr, tile_stops_ptr, positions_ptr,
    query_row_stride, query_head_stride, table_stride, num_kv_heads, window, scaling, softcap,
    ROWS: tl.constexpr, GROUPS: tl.constexpr, KEYS: tl.constexpr, KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    SHARERS: tl.constexpr, KEY_WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    HAS_SOFTCAP: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """One tile: rows `tile_rows .. tile_stops - 1` at most, and one key head with the SHARERS query heads that use it."""
    tile, kv_head = tl.program_id(0), tl.program_id(1)
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
    for first_key in range(start, last_position + 1, KEYS):
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

    out_at = (rows.to(tl.int64)[:, None] * (num_kv_heads * SHARERS) + heads[:, None]) * VALUE_WIDTH + value_dims[None, :]
    result = (summed / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + out_at, result, mask=inside[:, None] & (value_dims < VALUE_WIDTH)[None, :])


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
    num_rows, num_heads, key_dim = queries.shape
    _, num_kv_heads, block_size, value_dim = cache.values.shape
    queries = queries if queries.stride(2) == 1 else queries.contiguous()
    out = torch.empty(num_rows, num_heads, value_dim, dtype=queries.dtype, device=queries.device)
    groups = num_heads // num_kv_heads
    shape = TileShape.of(batch.spans[-1].num_rows, groups, key_dim, value_dim)
    tiles = _tiles(batch, shape.rows)
    attend_kernel[(tiles.shape[1], num_kv_heads)](
        queries.to(cache.keys.dtype), cache.keys, cache.values, out, batch.block_tables, tiles[0], tiles[1], tiles[2], batch.positions,
        queries.stride(0), queries.stride(1), batch.block_tables.stride(0), num_kv_heads,
        scale.window, scale.scaling, scale.softcap or 1.0,
        ROWS=shape.rows, GROUPS=shape.groups, KEYS=shape.keys, KEY_DIM=shape.key_dim, VALUE_DIM=shape.value_dim,
        SHARERS=groups, KEY_WIDTH=key_dim, VALUE_WIDTH=value_dim, BLOCK_SIZE=block_size,
        HAS_SOFTCAP=scale.softcap is not None, DOT=_dot_type(cache.keys.dtype), num_warps=shape.num_warps,
    )  # fmt: skip
    return out


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


def _tiles(batch: AttentionBatch, num_rows: int) -> torch.Tensor:
    """Sequence, first row and end of each tile of at most so many rows: [3, N] int32, the same for all layers of a step."""
    tiles = batch.tiles.get(num_rows)
    if tiles is None:
        cut = [(span.sequence, row, span.row_stop) for span in batch.spans for row in range(span.row_start, span.row_stop, num_rows)]
        # The end of a tile is that of its sequence at the latest.
        columns = [(sequence, row, min(row + num_rows, stop)) for sequence, row, stop in cut]
        tiles = torch.tensor(columns, dtype=torch.int32).t().contiguous().to(batch.positions.device)
        batch.tiles[num_rows] = tiles
    return tiles
