"""Declared slopes of the library agree with central differences, and wrong ones do not."""

import pytest
from kernel_harness import library

from foxhunt.spec.models import GradientOf
from foxhunt.verify.gradients import check_gradients

KERNELS = library()
DECLARED = sorted(name for name, kernel in KERNELS.items() if kernel.gradient_of)


def declared(name, **changes):
    kernel = KERNELS[name]
    pair = kernel.gradient_of.model_dump() | changes
    return kernel.model_copy(update={"gradient_of": GradientOf.model_validate(pair)})


@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_slope_agrees_with_central_differences(name):
    assert not list(check_gradients(KERNELS[name], KERNELS))


def test_the_backward_kernels_that_one_forward_stands_for_declare_it():
    assert {"linear_dx", "bwd_dW_reduce", "bwd_db_reduce", "attention_grad", "mse_rows"} <= set(DECLARED)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("linear_dx", {"kernel": "linear_elu"}),
        ("linear_dx_add", {"slopes": {"dy": "y"}}),
        ("linear_dx_elu", {"before": {}}),
        ("vsn_mix_grad", {"before": {"e": "elu"}}),
        ("softmax_rows_grad", {"args": {"y": "x"}}),
    ],
)
def test_another_slope_is_found_with_its_element(name, changes):
    (found,) = check_gradients(declared(name, **changes), KERNELS)
    assert found.code == "FH707"
    assert f"kernel {name}: example 0: d" in found.message
    assert "central differences of" in found.message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kernel": "lineal"}, "there is no forward kernel lineal"),
        ({"slopes": {"dz": "y"}}, "`slopes` names dz, which is none"),
        ({"slopes": {}}, "`slopes` and `losses` are both empty"),
        ({"gives": {"dx": "y"}}, "`gives` names y, which is none"),
        ({"before": {"z": "elu"}}, "`before` names z, which is none"),
    ],
)
def test_names_that_do_not_fit_are_found(changes, said):
    first = next(check_gradients(declared("linear_dx", **changes), KERNELS))
    assert (first.code, said in first.message) == ("FH708", True)
