"""What many tests of posted time stand on."""

from collections.abc import Iterator

import pytest

from tests.posted_time.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An HTTP receiver that answers 201 with a reference, until the test says otherwise."""
    with receiving() as made:
        yield made
