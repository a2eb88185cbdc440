"""Fixtures of pytest for these tests."""

import pytest

import roots


@pytest.fixture
def root(tmp_path):
    """Makes systems of a suite to install into."""
    return lambda suite, part="root": roots.Root(suite, tmp_path / part)
