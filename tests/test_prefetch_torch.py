# SPDX-License-Identifier: Apache-2.0
"""hr.prefetch with torch's tensors and loaders, on a simulated device."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import headrace as hr  # noqa: E402
from headrace import _core  # noqa: E402


def simulated(seed=1):
    return _core.simulated_device(seed)


def test_a_dataloader_with_workers_delivers_the_same_batches():
    data = torch.utils.data.TensorDataset(torch.randn(103, 3, 8, 8), torch.arange(103))
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(data, batch_size=10, num_workers=workers)
        batches = hr.prefetch(loader, simulated(), depth=3)
        assert len(batches) == 11
        for _ in range(2):
            got = list(batches)
            assert type(got[0]) is list and got[-1][0].shape == (3, 3, 8, 8)
            assert torch.equal(torch.cat([x for x, _ in got]), data.tensors[0])
            assert torch.equal(torch.cat([y for _, y in got]), data.tensors[1])


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16,
        torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn,
    ],
)  # fmt: skip
def test_every_dtype_is_copied(dtype):
    source = [(torch.randn(4, 5) * 3).to(dtype) for _ in range(5)] + [torch.zeros((), dtype=dtype)]
    for given, got in zip(source, hr.prefetch(source, simulated()), strict=True):
        assert got.dtype == dtype and got.shape == given.shape
        assert (
            got.contiguous()
            .view(-1)
            .view(torch.uint8)
            .equal(given.contiguous().view(-1).view(torch.uint8))
        )


def test_memory_formats_and_views_are_preserved():
    x = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    source = [
        x.to(memory_format=torch.channels_last),
        x.permute(3, 1, 0, 2),
        x[:, ::2],
        x.expand(2, 3, 4, 5)[:, :1].expand(2, 3, 4, 5),
        torch.empty(0, 3),
        x.float().requires_grad_(),
    ]
    got = list(hr.prefetch(source, simulated()))
    for given, copied in zip(source, got, strict=True):
        assert torch.equal(copied, given.detach())
    assert got[0].is_contiguous(memory_format=torch.channels_last)
    assert got[1].stride() == source[1].stride()


def test_held_tensors_stay_valid_while_buffers_are_reused():
    source = [torch.full((300, 300), float(i)) for i in range(40)]
    kept = []
    for batch in hr.prefetch(iter(source), simulated()):
        kept.append(batch[10:20])  # a view keeps the memory, too
    for i, view in enumerate(kept):
        assert (view == i).all()


def test_sparse_tensors_and_tensors_of_other_libraries_are_refused():
    with pytest.raises(hr.UnsupportedError, match=r"HR0886 .*sparse_coo tensor of shape \(3, 3\)"):
        next(iter(hr.prefetch([torch.eye(3).to_sparse()], simulated())))
    with pytest.raises(
        hr.ConfigError, match=r"HR0884 .*a tensor is on meta, but batches go to simulated"
    ):
        next(iter(hr.prefetch([torch.empty(3, device="meta")], simulated())))


def test_tensor_subclasses_are_preserved():
    class Named(torch.Tensor):
        pass

    (got,) = hr.prefetch([torch.ones(3).as_subclass(Named)], simulated())
    assert type(got) is Named and (got == 1).all()


def test_numpy_arrays_next_to_torch_tensors_stay_on_the_host():
    (got,) = hr.prefetch([{"x": torch.ones(2), "y": np.ones(2)}], simulated())
    assert isinstance(got["x"], torch.Tensor) and isinstance(got["y"], np.ndarray)


def test_our_loader_uses_its_own_prefetching():
    data = [(np.full((3, 4, 4), i, np.uint8), i) for i in range(10)]
    view = hr.prefetch(hr.Loader(data, batch_size=4), "cpu")
    images, labels = next(iter(view))
    assert isinstance(images, torch.Tensor) and labels.tolist() == [0, 1, 2, 3]


def test_a_transform_without_torch_on_cuda_says_so(monkeypatch):
    class Cuda:
        name, is_host = "cuda:0", False

    import sys

    from headrace.delivery.prefetch import Prefetch

    monkeypatch.delitem(sys.modules, "torch")
    made = Prefetch.__new__(Prefetch)
    made.device, made._transform = Cuda(), lambda batch: batch
    with pytest.raises(hr.ConfigError, match="HR0889"):
        made._side_streams()


def test_a_device_that_torch_cannot_use_is_refused_before_anything_runs(monkeypatch):
    loader = hr.Loader([(np.zeros((3, 4, 4), np.uint8), 1)], batch_size=1)
    with pytest.raises(hr.ConfigError, match=r"HR0996.*unknown device 'gpu'"):
        loader.torch("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("cuda", "cuda:0", torch.device("cuda")):
        with pytest.raises(hr.ConfigError, match=r"HR0996.*'cuda") as caught:
            loader.torch(name)
        assert ".torch() gives tensors on the host" in caught.value.hint
