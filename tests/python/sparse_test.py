"""Sparse tensors. Values beside PyTorch's: tests/peers/torch_sparse_test.py."""

import copy
import pickle

import lazuli as lz
import numpy as np
import pytest

PLACES, VALUES = [[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0]


def made(**options):
    return lz.sparse_coo_tensor(PLACES, VALUES, (2, 3), **options)


def test_values_of_one_place_are_added():
    assert made().to_dense().tolist() == [[0, 0, 3], [9, 0, 0]]
    whole = made().coalesce()
    assert whole.indices().tolist() == [[0, 1], [2, 0]] and whole.values().tolist() == [3, 9]
    assert repr(whole) == ("tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n       values=tensor([3., 9.]),\n"
                           "       size=(2, 3), nnz=2, layout=lazuli.sparse_coo)")


def test_products_have_gradients_for_both_factors():
    adjacency, x = made(requires_grad=True), lz.ones(3, 2, requires_grad=True)
    lz.sparse.mm(adjacency, x).sum().backward()
    assert adjacency.grad.to_dense().tolist() == [[0, 0, 2], [2, 0, 0]]
    assert x.grad.tolist() == [[9, 9], [0, 0], [3, 3]]


def test_steps_with_one_adjacency_compile_once():
    adjacency = made()

    def step():
        weight = lz.ones(3, 2, requires_grad=True)
        (adjacency @ weight).sum().backward()
        return weight.grad.tolist()

    step()
    step()
    compiled = lz.metrics.counter("UncachedCompile")
    step()
    assert lz.metrics.counter("UncachedCompile") == compiled


def test_calls_in_inference_mode_do_not_refuse_later_gradients():
    adjacency, x = made(), lz.ones(3, 2, requires_grad=True)
    with lz.inference_mode():
        lz.sparse.mm(adjacency, x), adjacency.to_dense()
    (lz.sparse.mm(adjacency, x).sum() + (adjacency * lz.ones(2, 3)).sum()).backward()
    assert x.grad.tolist() == [[9, 9], [0, 0], [3, 3]]


def test_rows_of_a_matrix():
    matrix = lz.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [1.0, 2.0, 3.0])
    assert matrix.to_dense().tolist() == [[0, 0, 1], [2, 3, 0]]
    assert matrix.t().layout is lz.sparse_csc and (matrix @ lz.ones(3)).tolist() == [1, 5]


def test_copies_are_equal():
    for other in (copy.deepcopy(made()), pickle.loads(pickle.dumps(made()))):
        assert other.to_dense().tolist() == made().to_dense().tolist()


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="size is inconsistent with indices: for dim 1, size is 2 but found index 2"):
        lz.sparse_coo_tensor(PLACES, VALUES, (2, 2))
    with pytest.raises(ValueError, match="indices must be integers, are float64"):
        lz.sparse_coo_tensor([[0.5]], [1.0])
    with pytest.raises(ValueError, match="compressed indices must go from 0 to 2 without a step down, are \\[0, 3\\]"):
        lz.sparse_csr_tensor([0, 3], [1, 0], [1.0, 2.0])
    with pytest.raises(NotImplementedError, match="exp: there is no form for sparse tensors; convert with to_dense\\(\\)"):
        lz.exp(made())
    with pytest.raises(ValueError, match="a product of \\(2, 3\\) and \\(2, 2\\) is not there"):
        made() @ lz.ones(2, 2)


class Unit:
    """Numbers with a unit, by PyTorch's protocol."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ == "mul":
            return NotImplemented
        values = [[v.value for v in x] if isinstance(x, list) else x.value if isinstance(x, Unit) else x for x in args]
        return Unit(function(*values, **(kwargs or {})))


def test_functions_ask_classes_that_stand_in_for_tensors():
    x = Unit(lz.ones(2))
    assert lz.add(x, lz.ones(2), alpha=3).value.tolist() == [4, 4] and lz.cat([x, x]).value.tolist() == [1] * 4
    assert lz.ones(2).add(x).value.tolist() == [2, 2] and lz.nn.functional.relu(x).value.tolist() == [1, 1]
    with pytest.raises(TypeError, match="mul"):
        lz.mul(x, x)
    with pytest.raises(TypeError, match="add"):
        lz.add(np, lz.ones(2))


def test_a_product_of_dense_matrices_is_dense():
    x, y = lz.arange(6.0).view(2, 3), lz.arange(6.0).view(3, 2)
    assert lz.sparse.mm(x, y).tolist() == (x @ y).tolist()
    with pytest.raises(lz.Error, match="mm: "):
        lz.sparse.mm(lz.ones(5), lz.ones(5))
