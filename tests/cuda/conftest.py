"""These tests need an NVIDIA GPU. Without one each is skipped, saying so; FOXHUNT_REQUIRE_CUDA forbids it."""

import os

import pytest

from foxhunt.backend.cuda import CudaBackend, unavailable

REASON = unavailable()


def pytest_collection_modifyitems(items):
    here = os.path.dirname(__file__)
    for item in items:
        if not str(item.path).startswith(here):
            continue
        item.add_marker(pytest.mark.cuda)
        if REASON and not os.environ.get("FOXHUNT_REQUIRE_CUDA"):
            item.add_marker(pytest.mark.skip(reason=f"no NVIDIA GPU to use: {REASON}"))


@pytest.fixture
def backend():
    made = CudaBackend()
    yield made
    made.close()
