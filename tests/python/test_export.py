"""`tare model` of what torch's exporters write, against torch itself: parameters, products, shapes."""
import contextlib
import importlib.util
import io
import json
import logging
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")
pytest.importorskip("onnx", reason="onnx is not installed for this Python: torch exports nothing without it")
from torch import nn  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8)
        self.each, self.up = nn.Conv2d(8, 8, 3, groups=8, padding=1), nn.ConvTranspose2d(8, 4, 2, 2)
        self.last = nn.Linear(4, 5)

    def forward(self, x):
        x = torch.max_pool2d(self.each(torch.relu(self.norm(self.first(x)))), 2)
        return self.last(self.up(x).mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)

    def forward(self, x):
        return self.layer(x, is_causal=False)  # left open, the older exporter makes a tensor of it and fails


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.back = nn.Embedding(30, 12), nn.Linear(12, 30, bias=False)
        self.back.weight = self.table.weight

    def forward(self, ids):
        return self.back(self.table(ids))


MODULES = {
    "convolutions": (Convolutions, lambda: torch.randn(2, 3, 16, 16)),
    "encoder": (Encoder, lambda: torch.randn(2, 7, 16)),
    "lstm": (lambda: nn.LSTM(6, 10, 2, bidirectional=True, batch_first=True), lambda: torch.randn(2, 5, 6)),
    "tied": (Tied, lambda: torch.randint(0, 30, (2, 7))),
}
# The file as the module is: optimizers put transposed copies of weights beside those that are used elsewhere, too.
OLDER = {"dynamo": False, "do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE}
NEWER = {"dynamo": True, "optimize": False, "verbose": False}


def made(name):
    torch.manual_seed(0)
    make, given = MODULES[name]
    module = make().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter)  # equal ones would be exported as one
    return module, given()


def export(module, given, path, **options):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            torch.onnx.export(module, (given,), str(path), **options)
        finally:
            logging.disable(logging.NOTSET)
    return path


def analyze(bench, path, *words):
    return json.loads(bench.call(bench.command, "model", "--static", "--json", *words, path).out)


def counted(module, given):
    """What torch counts, and the shapes that come out. By its plain kernels: others hide products from the counter."""
    counter = FlopCounterMode(display=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH), counter:
            out = module(given)
    parts = [out] if isinstance(out, torch.Tensor) else [out[0], *out[1]]
    return counter.get_total_flops(), [list(part.shape) for part in parts]


def check(bench, path, module, given):
    found, (flops, shapes) = analyze(bench, path), counted(module, given)
    assert flops > 0 and found["total"]["flops"] == flops
    assert found["total"]["macs"] * 2 == flops
    assert found["total"]["parameters"] == sum(parameter.numel() for parameter in module.parameters())
    assert [output["shape"] for output in found["outputs"]] == shapes
    assert found["total"]["nodes_not_counted"] == 0 and found["total"]["activations_known"]


@pytest.mark.parametrize("name", MODULES)
def test_the_older_exporter(bench, name):
    module, given = made(name)
    check(bench, export(module, given, bench.folder / "model.onnx", **OLDER), module, given)


@pytest.mark.skipif(not importlib.util.find_spec("onnxscript"), reason="onnxscript is not installed for this Python")
@pytest.mark.parametrize("name", ["encoder", "lstm", "tied"])
def test_the_newer_exporter(bench, name):
    module, given = made(name)
    check(bench, export(module, given, bench.folder / "model.onnx", **NEWER), module, given)


def test_as_it_is_called_without_options(bench):
    """The normalization is folded into the convolution before it: fewer parameters, the same products."""
    module, given = made("convolutions")
    found = analyze(bench, export(module, given, bench.folder / "model.onnx", dynamo=False))
    assert found["total"]["flops"] == counted(module, given)[0]
    folded = sum(parameter.numel() for parameter in module.norm.parameters())
    assert found["total"]["parameters"] == sum(parameter.numel() for parameter in module.parameters()) - folded


def test_a_batch_that_is_left_open(bench):
    module, given = made("convolutions")
    names = {"input_names": ["image"], "dynamic_axes": {"image": {0: "batch"}}}
    path = export(module, given, bench.folder / "model.onnx", **names, **OLDER)
    found = analyze(bench, path, "--batch", "6")
    assert found["total"]["flops"] == counted(module, torch.cat([given] * 3))[0]
    assert found["outputs"][0]["shape"] == [6, 5]
