"""Kernels between and for products of few rows, against PyTorch."""

from __future__ import annotations

import pytest
import torch

from formcast.engine.kernels import few_rows, row_math
from formcast.engine.kernels.row_math import Activation, HeadLayout, NormWeights

ROWS = (0, 1, 3, 4, 5, 16, 33)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3


def rms_norm(rows, weights):
    return torch.nn.functional.rms_norm(rows, rows.shape[-1:], weights.scale, weights.epsilon)


def norm_weights(width, seed=1):
    return NormWeights(scale=random(width, seed=seed), epsilon=1e-3)


@pytest.mark.parametrize("num_rows", ROWS)
@pytest.mark.parametrize(("num_outputs", "width"), [(4, 16), (20, 48), (64, 576), (36, 4096)])
def test_products(num_rows, num_outputs, width):
    rows, weights = random(num_rows, width), random(num_outputs, width, seed=1)
    assert few_rows.supports(weights)
    expected = (rows.double() @ weights.double().t()).float()
    torch.testing.assert_close(few_rows.multiply(rows, weights), expected, atol=1e-4 * width**0.5, rtol=1e-4)


def test_a_product_does_not_depend_on_the_other_rows():
    rows, weights = random(23, 96), random(40, 96, seed=1)
    together = few_rows.multiply(rows, weights)
    assert all(torch.equal(few_rows.multiply(rows[i : i + 1].clone(), weights)[0], together[i]) for i in range(23))


def test_products_on_several_threads():
    rows, weights = random(5, 256), random(1024, 256, seed=1)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = few_rows.multiply(rows, weights)
        torch.set_num_threads(3)
        assert torch.equal(few_rows.multiply(rows, weights), alone)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "weights",
    [torch.zeros(8, 15), torch.zeros(5, 16), torch.zeros(8, 16, dtype=torch.bfloat16), torch.zeros(16, 8).t()],
    ids=["width", "outputs", "type", "layout"],
)
def test_other_weights_are_not_supported(weights):
    assert not few_rows.supports(weights)


@pytest.mark.parametrize("num_rows", ROWS)
@pytest.mark.parametrize("width", [1, 7, 48, 576])
def test_norms(num_rows, width):
    rows, changes, weights, change_norm = (
        random(num_rows, width),
        random(num_rows, width, seed=3),
        norm_weights(width),
        norm_weights(width, 2),
    )
    torch.testing.assert_close(row_math.norm(rows, weights), rms_norm(rows, weights), atol=1e-5, rtol=1e-5)
    for given, added in ((None, changes), (change_norm, rms_norm(changes, change_norm))):
        summed = rows.clone()
        normed = row_math.add_and_norm(summed, changes, given, weights)
        torch.testing.assert_close(summed, rows + added, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(normed, rms_norm(rows + added, weights), atol=1e-5, rtol=1e-5)
        only_added = rows.clone()
        row_math.add(only_added, changes, given)
        assert torch.equal(only_added, summed)


@pytest.mark.parametrize("num_rows", ROWS)
@pytest.mark.parametrize("rotary_dim", [8, 12])
@pytest.mark.parametrize("normed", [False, True], ids=["", "normed"])
def test_rotary_embedding(num_rows, rotary_dim, normed):
    layout = HeadLayout(num_heads=3, num_kv_heads=2, head_dim=12)
    rows = random(num_rows, layout.width)
    angles = random(num_rows, rotary_dim // 2, seed=1).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()
    norms = (norm_weights(12, 2), norm_weights(12, 4)) if normed else None
    heads = rows.view(num_rows, 7, 12).clone()
    if norms is not None:
        heads[:, :3], heads[:, 3:5] = rms_norm(heads[:, :3], norms[0]), rms_norm(heads[:, 3:5], norms[1])
    turned = heads[:, :5, :rotary_dim].clone()
    half = torch.cat((-turned[..., rotary_dim // 2 :], turned[..., : rotary_dim // 2]), dim=-1)
    heads[:, :5, :rotary_dim] = turned * cos.unsqueeze(1) + half * sin.unsqueeze(1)
    row_math.rotate(rows, layout, cos, sin, norms)
    torch.testing.assert_close(rows.view(num_rows, 7, 12), heads, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_rows", ROWS)
@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (Activation.SILU, torch.nn.functional.silu),
        (Activation.GELU_TANH, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
    ],
    ids=["silu", "gelu"],
)
def test_gates(num_rows, activation, expected):
    rows = random(num_rows, 2 * 37)
    rows[..., :6] *= torch.tensor([0.0, 1.0, -1.0, 30.0, -30.0, 1e4])
    torch.testing.assert_close(row_math.gate(rows, activation), expected(rows[:, :37]) * rows[:, 37:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_rows", ROWS)
@pytest.mark.parametrize("width", [50, 64])
@pytest.mark.parametrize("offset", [0, 128])
def test_quantised_rows_stand_for_the_rows(num_rows, width, offset):
    rows = random(num_rows, 50)
    integers, scales = row_math.quantize_rows(rows, width, offset=offset)
    used = integers[: 2 * num_rows, :50].int() - offset
    used = torch.where(used > 127, used - 256, used)
    assert integers.shape == (row_math.num_quantized_rows(num_rows), width) and bool((used.abs() <= 127).all())
    assert bool((integers[: 2 * num_rows, 50:] == 0).all())
    back = row_math.combine_rows(used, scales, torch.ones(50))
    assert back.shape == rows.shape and bool(((back - rows).abs() <= rows.abs().amax(1, keepdim=True) / 64516 * 1.01).all())


@pytest.mark.parametrize("num_rows", ROWS)
@pytest.mark.parametrize(("num_outputs", "width"), [(4, 64), (20, 128), (64, 1536)])
def test_integer_products_are_exact(num_rows, num_outputs, width):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(-128, 128, (num_rows, width), generator=generator, dtype=torch.int8)
    weights = torch.randint(-128, 128, (num_outputs, width), generator=generator, dtype=torch.int8)
    rows[:1], weights[0], weights[1] = 127, 127, -128
    actual = few_rows.multiply_int8((rows.int() + few_rows.ROW_OFFSET).to(torch.uint8), weights, few_rows.int8_offsets(weights))
    assert torch.equal(actual, rows.int() @ weights.int().t())
