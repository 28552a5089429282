"""FLOPs of operators and modules against arithmetic by hand, and torch's own counter where it knows all operators; with
parameters, sizes and activations of models."""
import json

from truth import Figure, exact, relative

HAND = "arithmetic by hand from the sizes of its layers"
FIGURES = [
    Figure("python:PerformanceProfiler.compute.estimated_flops", "operations of a block",
           HAND + "; for transformers torch's "
           "FlopCounterMode with attention as plain products", exact),
    Figure("python:PerformanceProfiler.compute.flops_not_counted", "operators without a formula",
           "what the block called", exact),
    Figure("python:PerformanceProfiler.compute.flops_per_second", "operations over the block's time",
           HAND + ", over its own wall_time_s", relative(1e-9)),
    Figure("python:PerformanceProfiler.compute.flops_per_param", "operations for each parameter", HAND,
           relative(1e-12)),
    Figure("python:PerformanceProfiler.compute.parameters", "parameters of the modules that were called", HAND, exact),
    Figure("python:ModelProfiler.model.flops", "operations of one run", HAND, exact),
    Figure("python:ModelProfiler.model.macs", "multiply-adds of one run", HAND, exact),
    Figure("python:ModelProfiler.model.parameters", "parameters, shared ones once", HAND, exact),
    Figure("python:ModelProfiler.model.trainable_parameters", "parameters that have gradients", HAND, exact),
    Figure("python:ModelProfiler.model.parameter_bytes", "bytes of the parameters", HAND, exact),
    Figure("python:ModelProfiler.model.size_bytes", "bytes of parameters and buffers", HAND, exact),
    Figure("python:ModelProfiler.memory.activation", "bytes of tensors alive at once in a run",
           "the input of the second layer and its output by hand", relative(0.02)),
    Figure("python:ModelProfiler.layers[].flops", "operations of a layer in one run", HAND, exact),
    Figure("python:ModelProfiler.layers[].parameters", "parameters of a layer", HAND, exact),
    Figure("python:ModelProfiler.compute.flops_per_second", "operations over the median latency", HAND, relative(1e-9)),
    Figure("run:operators[].bytes_estimate", "bytes of the tensors of all calls", HAND, exact),
]

# Each: what is counted, and what is true by hand. Rows of a batch times the sizes of the weights, twice.
BY_HAND = """
import json, sys, warnings
warnings.simplefilter("ignore")
import torch
import tare
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x, y, q = torch.randn(2, 5, 8), torch.randn(2, 5, 16), torch.randn(2, 4, 5, 8)
image = torch.randn(1, 4, 8, 8)
rows = 2 * 5

def recurrent(gates, width, hidden, layers=1, ways=1, rows=rows):
    return sum(2 * rows * ways * gates * hidden * (one + hidden) for one in [width] + [hidden * ways] * (layers - 1))

class Held(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x)

class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
    def forward(self, x, times: int = 3):
        for i in range(times):
            if bool(x.sum() > -1e9):
                x = self.inner(x)
        return x

class Queries(nn.Module):  # learned, as in a Perceiver
    def __init__(self):
        super().__init__()
        self.heads, self.queries = nn.MultiheadAttention(16, 4, batch_first=True), nn.Parameter(torch.randn(2, 3, 16))
    def forward(self, y):
        return self.heads(self.queries, y, y, need_weights=False)

normed = torch.nn.utils.parametrizations.weight_norm(nn.Linear(8, 4))
quantized = torch.ao.quantization.quantize_dynamic
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2).eval()
encoded = 2 * (2 * rows * (4 * 16 * 16 + 2 * 16 * 32) + 2 * 2 * 2 * 25 * 16)
heads = nn.MultiheadAttention(16, 4, batch_first=True).eval()
headed = 2 * rows * 4 * 16 * 16 + 2 * 2 * 2 * 25 * 16
static = nn.Sequential(torch.ao.quantization.QuantStub(), nn.Conv2d(4, 6, 3, groups=2), nn.ReLU(),
                       torch.ao.quantization.DeQuantStub()).eval()
static.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
torch.ao.quantization.prepare(static, inplace=True)
static(image)
torch.ao.quantization.convert(static, inplace=True)
compiled = torch.compile(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), backend="aot_eager")
compiled(x)

EVAL = {
    "LSTM": (nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), x, recurrent(4, 8, 16, 2, 2)),
    "GRU": (nn.GRU(8, 16, 2, batch_first=True), x, recurrent(3, 8, 16, 2)),
    "RNN": (nn.RNN(8, 16, batch_first=True), x, recurrent(1, 8, 16)),
    "LSTM with projection": (nn.LSTM(8, 16, proj_size=4, batch_first=True), x, 2 * rows * (64 * (8 + 4) + 16 * 4)),
    "LSTM, packed": (nn.LSTM(8, 16), nn.utils.rnn.pack_padded_sequence(x, [5, 3], batch_first=True),
                     recurrent(4, 8, 16, rows=8)),
    "encoder, fast path": (encoder, y, encoded),
    "attention module": (lambda y: heads(y, y, y), y, headed),
    "attention module, no weights": (lambda y: heads(y, y, y, need_weights=False), y, headed),
    "attention to others": (lambda y: heads(y[:, :3], y, y), y,
                            2 * 6 * 2 * 256 + 2 * rows * 2 * 256 + 2 * 2 * 2 * 15 * 16),
    "learned queries": (Queries(), y, 2 * 6 * 2 * 256 + 2 * rows * 2 * 256 + 2 * 2 * 2 * 15 * 16),
    "weight norm": (normed, x, 2 * rows * 32),
    "complex": (lambda x: torch.complex(x[0], x[0]) @ torch.complex(x[1], x[1]).t(), x, 8 * 5 * 8 * 5),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q, 2 * 2 * 8 * 25 * 8),
    "attention, grouped": (lambda q: F.scaled_dot_product_attention(q, q[:, :2], q[:, :2], enable_gqa=True), q,
                           2 * 2 * 8 * 25 * 8),
    "quantized linear": (quantized(nn.Sequential(nn.Linear(8, 4)), {nn.Linear}), x, 2 * rows * 32),
    "quantized LSTM": (quantized(Held(nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True)), {nn.LSTM}), x,
                       recurrent(4, 8, 16, 2, 2)),
    "quantized GRU": (quantized(Held(nn.GRU(8, 16, 2, batch_first=True)), {nn.GRU}), x, recurrent(3, 8, 16, 2)),
    "quantized cell": (quantized(nn.Sequential(nn.LSTMCell(8, 16)), {nn.LSTMCell}), x[:, 0], 2 * 2 * 64 * 24),
    "quantized convolution": (static, image, 2 * 6 * 36 * 2 * 9),
    "grouped product": (lambda x: torch._grouped_mm(torch.randn(8, 16), torch.randn(2, 16, 32),
                                                    torch.tensor([3, 8], dtype=torch.int32)), x, 2 * 8 * 16 * 32),
    "einsum": (lambda x: torch.einsum("bij,bkj->bik", x, x), x, 2 * 2 * 5 * 8 * 5),
    "nested": (nn.Linear(8, 4), torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)]), 2 * 8 * 32),
    "jagged": (nn.Linear(8, 4),
               torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)], layout=torch.jagged), 2 * 8 * 32),
    "loop": (Loop(), x, 3 * 2 * rows * 64),
    "loop in TorchScript": (torch.jit.script(Loop()), x, 3 * 2 * rows * 64),
    "traced LSTM": (torch.jit.trace(nn.LSTM(8, 16, batch_first=True).eval(), x), x, recurrent(4, 8, 16)),
    "compiled": (compiled, x, 2 * rows * (8 * 16 + 16 * 4)),
    "module called twice": (lambda x: (lambda one: one(one(x)))(nn.Linear(8, 8)), x, 2 * 2 * rows * 64),
}
TRAIN = {"LSTM": (nn.LSTM(8, 16, batch_first=True), x, 3 * recurrent(4, 8, 16)),
         "attention, its scores computed twice": (lambda q: F.scaled_dot_product_attention(q, q, q), q,
                                                  2 * 8 * 25 * 8 * 7),
         "linear": (nn.Linear(8, 4), x, 3 * 2 * rows * 32)}
for size, plain, transposed in ((1, nn.Conv1d, nn.ConvTranspose1d), (2, nn.Conv2d, nn.ConvTranspose2d),
                                (3, nn.Conv3d, nn.ConvTranspose3d)):
    picture = torch.randn(2, 4, *[9] * size)
    for groups in (1, 2):
        one, other = 2 * 2 * 6 * 5 ** size * 4 // groups * 3 ** size, 2 * 2 * 4 * 9 ** size * 6 // groups * 3 ** size
        pair = plain(4, 6, 3, stride=2, padding=1, groups=groups), transposed(4, 6, 3, stride=2, groups=groups)
        for name, module, flops in (("convolution", pair[0], one), ("transposed", pair[1], other)):
            EVAL[f"{name} {size}D {groups}"] = module, picture, flops
            TRAIN[f"{name} {size}D {groups}"] = module, picture, 3 * flops

def counted(call):
    profiler = tare.PerformanceProfiler(estimate_flops=True)
    with profiler.profile("block"):
        call()
    metrics = profiler.get_metrics()
    compute = metrics.compute
    told = compute.to_dict()
    return [told["estimated_flops"], list(compute.flops_not_counted), told["flops_per_second"],
            metrics.timing.wall_time_s,
            told["parameters"], told["flops_per_param"]]
"""


def test_operators_and_modules_by_hand(truth, bench):
    done = bench.python(BY_HAND + """
found = []
for mode in (torch.no_grad, torch.inference_mode):
    for name, (model, given, flops) in EVAL.items():
        with mode():
            found.append([name, counted(lambda: model(given)), flops])
for name, (model, given, flops) in TRAIN.items():
    given = given.clone().requires_grad_()
    def step():
        out = model(given)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
    found.append([name + ", forward and backward", counted(step), flops])
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
found.append(["layers", counted(lambda: model(x)), 2 * rows * (8 * 16 + 16 * 4)])
print(json.dumps(found))
""")
    found = json.loads(done.out.splitlines()[-1])
    for name, (shown, not_counted, *_), flops in found:
        assert not_counted == [] and shown == flops, (name, shown, flops, not_counted)
    truth.check("python:PerformanceProfiler.compute.estimated_flops", [one[1][0] for one in found],
                [one[2] for one in found])
    _, (_, _, rate, wall, parameters, each), flops = found[-1]
    truth.check("python:PerformanceProfiler.compute.parameters", parameters, 8 * 16 + 16 + 16 * 4 + 4)
    truth.check("python:PerformanceProfiler.compute.flops_per_second", rate, flops / wall)
    truth.check("python:PerformanceProfiler.compute.flops_per_param", each, flops / (8 * 16 + 16 + 16 * 4 + 4))


def test_what_has_no_formula_is_named_and_never_0(truth, bench):
    done = bench.python(BY_HAND + """
@torch.library.custom_op("mine::product", mutates_args=())
def product(a: torch.Tensor) -> torch.Tensor:
    return a @ a.mT
found = [counted(lambda: (nn.Linear(8, 4)(x), nn.Bilinear(3, 4, 5)(torch.randn(2, 3), torch.randn(2, 4)))),
         counted(lambda: (nn.Linear(8, 4)(x), product(x))), counted(lambda: torch.fft.fft(torch.randn(8))),
         counted(lambda: torch.randn(8) + 1),
         counted(lambda: (nn.Linear(8, 4)(x).relu().softmax(-1), F.layer_norm(x, (8,))))]
print(json.dumps(found))
""")
    bilinear, custom, fourier, added, plain = json.loads(done.out.splitlines()[-1])
    truth.check("python:PerformanceProfiler.compute.flops_not_counted", [bilinear[1], custom[1], plain[1]],
                [["aten::_trilinear"], ["mine::product"], []])
    assert bilinear[0] == custom[0] == plain[0] == 2 * 10 * 32
    assert fourier[0] is None and added[0] is None


TRANSFORMERS = """
import transformers as tf
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

def theirs(call):
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()

ids = torch.randint(0, 90, (2, 16))
sizes = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
text = dict(input_ids=ids)
tokens = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
MODELS = {
    "Llama": (tf.LlamaForCausalLM(tf.LlamaConfig(num_key_value_heads=2, **sizes)), text, 0),
    "GPT-2": (tf.GPT2Model(tf.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4)), text, 0),
    "BERT": (tf.BertModel(tf.BertConfig(**sizes)), text, 0),
    "ViT": (tf.ViTModel(tf.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                     image_size=32, patch_size=8)), dict(pixel_values=torch.randn(2, 3, 32, 32)), 0),
    "T5": (tf.T5Model(tf.T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)),
           dict(input_ids=ids, decoder_input_ids=ids), 0),
    "Whisper": (tf.WhisperModel(tf.WhisperConfig(
        vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=16, **tokens)),
        dict(input_features=torch.randn(2, 8, 32), decoder_input_ids=ids), 0),
    # Two experts of three products for each token and layer; torch's counter does not know them in one operator.
    "Mixtral": (tf.MixtralModel(tf.MixtralConfig(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
                                                 **sizes)),
                text, 2 * 2 * 32 * 2 * 3 * 32 * 64),
}
found = []
for name, (model, given, experts) in MODELS.items():
    model.eval()
    with torch.no_grad():
        by_them = theirs(lambda: model(**given))
        grouped = name == "Mixtral" and by_them < experts
        found.append([name, counted(lambda: model(**given)), by_them + (experts if grouped else 0)])
print(json.dumps(found))
"""


def test_transformers(truth, bench):
    done = bench.python(BY_HAND + TRANSFORMERS)
    for name, (shown, not_counted, *_), flops in json.loads(done.out.splitlines()[-1]):
        assert not_counted == [] and shown == flops, (name, shown, flops, not_counted)
        truth.check("python:PerformanceProfiler.compute.estimated_flops", shown, flops)


def test_parameters_that_are_inputs(truth, bench):
    """Of a part of the model: weights that are computed, queries that are learned."""
    done = bench.python(BY_HAND + """
class Forces(nn.Module):  # a force is the gradient of an energy
    def __init__(self):
        super().__init__()
        self.energy = nn.Linear(8, 1, bias=False)
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(self.energy(x).sum(), x)[0]

models = {"normed": (nn.Sequential(normed), x), "queries": (nn.Sequential(Queries()), y), "forces": (Forces(), x)}
found = {name: tare.ModelProfiler(model).profile(given, num_runs=2)["model"] for name, (model, given) in models.items()}
print(json.dumps({name: [one["flops"], one["flops_at_least"]] for name, one in found.items()}))
""")
    found = json.loads(done.out.splitlines()[-1])
    truth.check("python:ModelProfiler.model.flops", found["normed"], [2 * 10 * 32, False])
    truth.check("python:ModelProfiler.model.flops", found["forces"], [2 * 2 * 10 * 8, False])
    truth.check("python:ModelProfiler.model.flops", found["queries"],
                [2 * 6 * 2 * 256 + 2 * 10 * 2 * 256 + 2 * 2 * 2 * 15 * 16, False])


def test_a_model_and_its_layers(truth, bench):
    done = bench.python("""
import json, torch, tare
from torch import nn
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.BatchNorm1d(512))
model[2].bias.requires_grad_(False)
torch.set_num_threads(1)
profiler = tare.ModelProfiler(model)
results = profiler.profile(torch.randn(64, 256), num_runs=5, warmup_runs=1)
layers = profiler.profile_layers()["layers"]
plain = lambda group: {key: value for key, value in group.items() if isinstance(value, (int, float, str, bool, list))}
print(json.dumps([plain(results["model"]), plain(results["memory"]), results["compute"]["flops_per_second"],
                  results["latency"]["p50"], [plain(row) for row in layers]]))
""")
    model, memory, rate, latency, layers = json.loads(done.out.splitlines()[-1])
    first, second = 256 * 1024, 1024 * 512
    weights = first + 1024 + second + 512 + 2 * 512
    flops = 2 * 64 * (first + second)
    truth.check("python:ModelProfiler.model.flops", model["flops"], flops)
    truth.check("python:ModelProfiler.model.macs", model["macs"], flops // 2)
    truth.check("python:ModelProfiler.model.parameters", model["parameters"], weights)
    truth.check("python:ModelProfiler.model.trainable_parameters", model["trainable_parameters"], weights - 512)
    truth.check("python:ModelProfiler.model.parameter_bytes", model["parameter_bytes"], 4 * weights)
    truth.check("python:ModelProfiler.model.size_bytes", model["size_bytes"], 4 * (weights + 2 * 512) + 8)
    truth.check("python:ModelProfiler.memory.activation", memory["activation"], 4 * 64 * (1024 + 1024))
    truth.check("python:ModelProfiler.compute.flops_per_second", rate, flops / (latency / 1e3))
    assert model["flops_at_least"] is False and model["not_counted"] == []
    linear = {row["name"]: row for row in layers}
    truth.check("python:ModelProfiler.layers[].flops", [linear["0"]["flops"], linear["2"]["flops"]],
                [128 * first, 128 * second])
    truth.check("python:ModelProfiler.layers[].parameters",
                [row["parameters"] for row in layers if row["name"] in "0123"],
                [{"0": first + 1024, "1": 0, "2": second + 512, "3": 1024}[row["name"]] for row in layers])


def test_operators_of_a_run(truth, bench):
    done = bench.measured("""
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(16, 64)
for _ in range(6):
    optimizer.zero_grad()
    model(data).square().sum().backward()
    optimizer.step()
""", run=("--shapes",))
    row = next(one for one in done.json["operators"] if one["name"] == "aten::addmm")
    sizes = ((16, 64, 128), (16, 128, 32))
    each = row["calls"] / 2
    assert row["flops"] == each * sum(2 * m * k * n for m, k, n in sizes)  # its row is in test_operators.py
    truth.check("run:operators[].bytes_estimate", row["bytes_estimate"],
                each * sum(4 * (n + m * k + k * n + m * n) for m, k, n in sizes))
