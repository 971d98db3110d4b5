"""Values and gradients at zeros, ties, infinities, NaN and subnormals are PyTorch's (special_values.py says how that is known)."""

import pytest
import special_values

import lazuli as lz

ANSWERS = special_values.recorded()
FUNCTION = special_values.find_function(lz.nn.functional, lz)


def test_every_function_has_a_row():
    special_values.check_complete(lz)


def test_the_record_is_of_the_rows():
    assert set(ANSWERS) == set(special_values.ROWS)


@pytest.mark.parametrize("device", ["cpu:0", "interpreter:0"])
@pytest.mark.parametrize("row", special_values.ROWS, ids=lambda row: f"{row[1]} of {row[0]}")
def test_as_in_torch(row, device):
    got = special_values.outcome(lz, FUNCTION, row, "float32", lambda x: lz.tensor(x, device=device))
    assert not list(special_values.differences(row, "float32", got, ANSWERS[row]))
