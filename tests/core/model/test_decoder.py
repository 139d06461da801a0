"""The decoder writes its maps once, with norm and dropout in the convolution's weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from adatkg_core.model.decoder import ConvTransE

B, DIM, FILTERS = 24, 16, 4


def textbook(decoder: ConvTransE, subject: Tensor, relation: Tensor) -> Tensor:
    """The same layers one after the other."""
    pair = decoder.dropout(decoder.norm_in(torch.stack((subject, relation), 1)))
    maps = decoder.drop_maps(F.relu(decoder.norm_maps(decoder.maps(pair))))
    found: Tensor = decoder.out(maps.flatten(1))
    return found


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("training", [True, False])
def test_folded_maps_equal_the_layers_one_after_the_other(kernel: int, training: bool) -> None:
    torch.manual_seed(1)
    one, other = (ConvTransE(DIM, FILTERS, kernel, 0.3, rectified=False).double() for _ in range(2))
    other.load_state_dict(one.state_dict())
    subject, relation = torch.randn(2, B, DIM, dtype=torch.double) * 3 + 1
    for step in range(3):  # the first steps fill the running statistics that the last one reads
        outcomes = []
        for decoder, run in ((one, one.__call__), (other, lambda s, r: textbook(other, s, r))):
            decoder.train(training or step < 2)
            decoder.zero_grad()
            torch.manual_seed(step)
            wanted = run(subject, relation)
            wanted.pow(3).sum().backward()
            outcomes.append([wanted, *(one.grad for one in decoder.parameters()), *decoder.buffers()])
        torch.testing.assert_close(outcomes[0], outcomes[1], atol=1e-8, rtol=1e-8)
