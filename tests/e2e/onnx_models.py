"""Writes ONNX models: the ones whose cost is published, layer by layer, and small ones around single operators.

usage: onnx_models.py FOLDER NAME...          run by a Python that has onnx; `small` is all the small ones
       onnx_models.py --inline FOLDER NAME... weights inside of the file, as holes

Weights of the large ones are in a sparse file beside the model: right in shape and size, nowhere on the disk.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A graph that grows node by node; every method returns the name of what it made."""

    def __init__(self, name, external=True):
        self.name, self.external = name, external
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.functions, self.infos, self.bytes = [], [], 0
        self.opsets, self.kinds = {"": 17}, {}  # kinds: of outputs that are no floats

    def node(self, op, *inputs, name="", outputs=1, domain="", **attributes):
        made = [f"{name or op}_{len(self.nodes)}_{i}" if outputs > 1 else f"{name or op}_{len(self.nodes)}"
                for i in range(outputs)]
        taken = any(node.name == name for node in self.nodes)
        self.nodes.append(helper.make_node(op, list(inputs), made, name=name if name and not taken else made[0],
                                           domain=domain, **attributes))
        if domain:
            self.opsets.setdefault(domain, 1)
        return made if outputs > 1 else made[0]

    def weight(self, *shape, name=None, kind=TensorProto.FLOAT):
        """Zeros that are nowhere."""
        name = name or f"w{len(self.weights)}"
        size = int(np.prod(shape)) * np.dtype(helper.tensor_dtype_to_np_dtype(kind)).itemsize
        tensor = TensorProto(name=name, data_type=kind, dims=shape)
        if self.external:
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", self.name + ".data"), ("offset", self.bytes), ("length", size)):
                tensor.external_data.add(key=key, value=str(value))
            self.bytes += (size + 4095) // 4096 * 4096
        else:
            tensor.raw_data = bytes(size)
        self.weights.append(tensor)
        return name

    def values(self, *numbers, kind=np.int64, shape=None):
        name = f"c{len(self.weights)}"
        array = np.array(numbers, dtype=kind)
        self.weights.append(numpy_helper.from_array(array if shape is None else array.reshape(shape), name))
        return name

    def constant(self, value, kind=np.float32):
        return self.node("Constant", value=numpy_helper.from_array(np.array(value, dtype=kind)))

    def input(self, name, *shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, *shape, kind=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape or None))

    def save(self, folder, ir_version=9):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights,
                                  value_info=self.infos)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = helper.make_model(graph, opset_imports=opsets, functions=self.functions, producer_name="tare tests",
                                  ir_version=ir_version)
        path = os.path.join(folder, self.name + ".onnx")
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
        if self.bytes:
            with open(os.path.join(folder, self.name + ".data"), "wb") as file:
                file.truncate(self.bytes)
        return path

    def save_inline(self, folder):
        """With the weights inside of the file, where they are holes: written in no time, read as zeros."""
        def field(number, length):
            word, out = number << 3 | 2, bytearray()
            for value in (word, length):
                while value > 127:
                    out.append(value & 127 | 128)
                    value >>= 7
                out.append(value)
            return bytes(out)

        parts, length = [], 0
        for tensor in self.weights:
            kept, hole = TensorProto(), 0
            kept.CopyFrom(tensor)
            if tensor.data_location == TensorProto.EXTERNAL:
                hole = next(int(entry.value) for entry in tensor.external_data if entry.key == "length")
                kept.ClearField("data_location")
                kept.ClearField("external_data")
            data = kept.SerializeToString() + (field(9, hole) if hole else b"")
            data = field(5, len(data) + hole) + data
            parts.append((data, hole))
            length += len(data) + hole
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, []).SerializeToString()
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = onnx.ModelProto(ir_version=9, opset_import=opsets).SerializeToString()
        path = os.path.join(folder, self.name + ".onnx")
        with open(path, "wb") as file:
            file.write(model + field(7, len(graph) + length) + graph)
            for data, hole in parts:
                file.write(data)
                file.seek(hole, os.SEEK_CUR)
            file.truncate()
        return path

    # ---- layers ------------------------------------------------------------------------------------------------
    def linear(self, x, inputs, outputs, bias=True, name="linear"):
        y = self.node("MatMul", x, self.weight(inputs, outputs), name=name)
        return self.node("Add", y, self.weight(outputs)) if bias else y

    def conv(self, x, inputs, outputs, kernel, stride=1, group=1, name="conv"):
        return self.node("Conv", x, self.weight(outputs, inputs // group, kernel, kernel), name=name, group=group,
                         strides=[stride] * 2, pads=[(kernel - 1) // 2] * 4, kernel_shape=[kernel] * 2)

    def batch_norm(self, x, channels):
        return self.node("BatchNormalization", x, *[self.weight(channels) for _ in range(4)])

    def layer_norm(self, x, width, bias=True):
        weights = [self.weight(width) for _ in range(2 if bias else 1)]
        return self.node("LayerNormalization", x, *weights, axis=-1)

    def length(self, x, axis):
        """One dimension of x as a list of one, the way torch's exporter asks for it."""
        found = self.node("Gather", self.node("Shape", x), self.values(axis, shape=()), axis=0)
        return self.node("Unsqueeze", found, self.values(0))

    def heads(self, x, heads, depth, order=(0, 2, 1, 3)):
        to = self.node("Concat", self.length(x, 0), self.length(x, 1), self.values(heads), self.values(depth), axis=0)
        return self.node("Transpose", self.node("Reshape", x, to), perm=list(order))

    def attention(self, q, k, v, width, heads, mask=None):
        """Three projected tensors of [batch, length, width]; every shape computed from the tensors."""
        depth = width // heads
        turned = self.heads(k, heads, depth, (0, 2, 3, 1))
        scores = self.node("MatMul", self.heads(q, heads, depth), turned, name="scores")
        scores = self.node("Div", scores, self.constant(depth ** 0.5))
        if mask:
            scores = self.node("Add", scores, mask)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), self.heads(v, heads, depth), name="mixed")
        mixed = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        shape = self.node("Shape", mixed)
        first = self.node("Slice", shape, self.values(0), self.values(2), self.values(0))
        return self.node("Reshape", mixed, self.node("Concat", first, self.values(-1), axis=0))

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.constant(2 ** 0.5)))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.constant(1.0))), self.constant(0.5))


# ---- models with published figures ----------------------------------------------------------------------------
def resnet50():
    net = Net("resnet50")
    x = net.input("image", "batch", 3, 224, 224)
    x = net.node("Relu", net.batch_norm(net.conv(x, 3, 64, 7, 2, name="stem"), 64))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inside = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = net.node("Relu", net.batch_norm(net.conv(x, inside, width, 1), width))
            y = net.node("Relu", net.batch_norm(net.conv(y, width, width, 3, stride), width))
            y = net.batch_norm(net.conv(y, width, 4 * width, 1), 4 * width)
            if not block:
                x = net.batch_norm(net.conv(x, inside, 4 * width, 1, stride, name="shortcut"), 4 * width)
            x, inside = net.node("Relu", net.node("Add", y, x)), 4 * width
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    net.output(net.node("Gemm", x, net.weight(1000, 2048), net.weight(1000), transB=1, name="head"), "batch", 1000)
    return net


def mobilenetv2():
    net = Net("mobilenetv2")
    x = net.input("image", "batch", 3, 224, 224)
    six = lambda x: net.node("Clip", x, net.constant(0.0), net.constant(6.0))
    unit = lambda x, i, o, k, s=1, g=1: six(net.batch_norm(net.conv(x, i, o, k, s, g), o))
    x, inside = unit(x, 3, 32, 3, 2), 32
    for wider, width, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                         (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            y, middle, by = x, inside * wider, stride if not block else 1
            y = unit(y, inside, middle, 1) if wider > 1 else y
            y = unit(y, middle, middle, 3, by, middle)
            y = net.batch_norm(net.conv(y, middle, width, 1), width)
            x, inside = net.node("Add", x, y) if by == 1 and inside == width else y, width
    x = net.node("ReduceMean", unit(x, inside, 1280, 1), axes=[2, 3], keepdims=0)
    net.output(net.node("Gemm", x, net.weight(1000, 1280), net.weight(1000), transB=1), "batch", 1000)
    return net


def vit_b_16():
    net = Net("vit_b_16")
    x = net.input("image", "batch", 3, 224, 224)
    x = net.node("Conv", x, net.weight(768, 3, 16, 16), net.weight(768), strides=[16, 16], kernel_shape=[16, 16])
    to = net.node("Concat", net.length(x, 0), net.values(768), net.values(-1), axis=0)
    x = net.node("Transpose", net.node("Reshape", x, to), perm=[0, 2, 1])
    shape = net.node("Concat", net.length(x, 0), net.values(-1), net.values(-1), axis=0)
    ones = net.node("ConstantOfShape", net.values(3), value=numpy_helper.from_array(np.array([1], dtype=np.int64)))
    every = net.node("Equal", shape, net.node("Mul", ones, net.values(-1)))
    token = net.node("Expand", net.weight(1, 1, 768, name="token"), net.node("Where", every, ones, shape))
    x = net.node("Add", net.node("Concat", token, x, axis=1), net.weight(1, 197, 768, name="positions"))
    for _ in range(12):
        y = net.linear(net.layer_norm(x, 768), 768, 2304, name="qkv")
        q, k, v = net.node("Split", y, net.values(768, 768, 768), outputs=3, axis=-1)
        x = net.node("Add", x, net.linear(net.attention(q, k, v, 768, 12), 768, 768))
        y = net.linear(net.gelu(net.linear(net.layer_norm(x, 768), 768, 3072)), 3072, 768)
        x = net.node("Add", x, y)
    x = net.node("Gather", net.layer_norm(x, 768), net.values(0, shape=()), axis=1)
    net.output(net.node("Gemm", x, net.weight(1000, 768), net.weight(1000), transB=1), "batch", 1000)
    return net


def embed_bert(net):
    ids = net.input("input_ids", "batch", "sequence", kind=TensorProto.INT64)
    kinds = net.input("token_type_ids", "batch", "sequence", kind=TensorProto.INT64)
    mask = net.input("attention_mask", "batch", "sequence", kind=TensorProto.INT64)
    length = net.node("Squeeze", net.length(ids, 1), net.values(0))
    places = net.node("Range", net.constant(0, np.int64), length, net.constant(1, np.int64))
    x = net.node("Gather", net.weight(30522, 768, name="words"), ids)
    x = net.node("Add", x, net.node("Gather", net.weight(2, 768, name="kinds"), kinds))
    return net.node("Add", x, net.node("Gather", net.weight(512, 768, name="places"), places)), mask


def finish_bert(net, x):
    first = net.node("Gather", x, net.constant(0, np.int64), axis=1)
    pooled = net.node("Tanh", net.node("Gemm", first, net.weight(768, 768), net.weight(768), transB=1, name="pooler"))
    net.output(x, "batch", "sequence", 768)
    net.output(pooled, "batch", 768)
    return net


def bert_base():
    net = Net("bert_base")
    x, mask = embed_bert(net)
    x = net.layer_norm(x, 768)
    mask = net.node("Cast", net.node("Unsqueeze", mask, net.values(1, 2)), to=TensorProto.FLOAT)
    mask = net.node("Mul", net.node("Sub", net.constant(1.0), mask), net.constant(-3e38))
    for _ in range(12):
        q, k, v = (net.linear(x, 768, 768, name=name) for name in "qkv")
        x = net.layer_norm(net.node("Add", x, net.linear(net.attention(q, k, v, 768, 12, mask), 768, 768)), 768)
        y = net.linear(net.gelu(net.linear(x, 768, 3072)), 3072, 768)
        x = net.layer_norm(net.node("Add", x, y), 768)
    return finish_bert(net, x)


def bert_fused():
    """The same after ONNX Runtime's optimizer for transformers."""
    net, own = Net("bert_fused"), "com.microsoft"
    x, _ = embed_bert(net)
    x = net.layer_norm(x, 768)
    for _ in range(12):
        y = net.node("Attention", x, net.weight(768, 2304), net.weight(2304), domain=own, num_heads=12)
        y = net.node("MatMul", y, net.weight(768, 768))
        x = net.node("SkipLayerNormalization", y, x, *(net.weight(768) for _ in range(3)), domain=own)
        y = net.node("BiasGelu", net.node("MatMul", x, net.weight(768, 3072)), net.weight(3072), domain=own)
        y = net.node("MatMul", y, net.weight(3072, 768))
        x = net.node("SkipLayerNormalization", y, x, *(net.weight(768) for _ in range(3)), domain=own)
    return finish_bert(net, x)


def gpt2():
    """Without biases, and the head is the embedding itself."""
    net = Net("gpt2")
    ids = net.input("input_ids", "batch", "sequence", kind=TensorProto.INT64)
    words = net.weight(50257, 768, name="words")
    length = net.node("Squeeze", net.length(ids, 1), net.values(0))
    places = net.node("Range", net.constant(0, np.int64), length, net.constant(1, np.int64))
    places = net.node("Gather", net.weight(1024, 768, name="places"), places)
    x = net.node("Add", net.node("Gather", words, ids), places)
    square = net.node("Concat", net.length(ids, 1), net.length(ids, 1), axis=0)
    mask = net.node("Trilu", net.node("ConstantOfShape", square), upper=1)
    for _ in range(12):
        y = net.linear(net.layer_norm(x, 768, bias=False), 768, 2304, bias=False)
        q, k, v = net.node("Split", y, net.values(768, 768, 768), outputs=3, axis=-1)
        x = net.node("Add", x, net.linear(net.attention(q, k, v, 768, 12, mask), 768, 768, bias=False))
        y = net.linear(net.layer_norm(x, 768, bias=False), 768, 3072, bias=False)
        x = net.node("Add", x, net.linear(net.gelu(y), 3072, 768, bias=False))
    x = net.layer_norm(x, 768, bias=False)
    head = net.node("MatMul", x, net.node("Transpose", words, perm=[1, 0]), name="head")
    net.output(head, "batch", "sequence", 50257)
    return net


# ---- small ones -------------------------------------------------------------------------------------------------
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OWN = "com.microsoft"


def small(make):
    """A model of a few nodes: `make` gets the net and returns what comes out."""
    def model():
        net = Net(make.__name__, external=False)
        made = make(net)
        for name in [made] if isinstance(made, str) else made:
            net.output(name, kind=net.kinds.get(name, FLOAT))
        return net
    model.__name__ = make.__name__
    SMALL[make.__name__] = model
    return model


SMALL = {}


@small
def conv_grouped(net):
    return net.conv(net.input("x", "batch", 8, 16, 16), 8, 12, 3, group=4)


@small
def conv_transposed(net):
    return net.node("ConvTranspose", net.input("x", 1, 4, 8, 8), net.weight(4, 6, 2, 2), strides=[2, 2])


@small
def lstm(net):
    x = net.input("x", "time", "batch", 10)
    return net.node("LSTM", x, net.weight(2, 80, 10), net.weight(2, 80, 20), net.weight(2, 160), outputs=3,
                    hidden_size=20, direction="bidirectional")


@small
def einsum(net):
    return net.node("Einsum", net.input("a", 2, 5, 3, 4), net.input("b", 2, 7, 3, 4), equation="bqhd,bkhd->bhqk")


@small
def elementwise_only(net):
    x = net.input("x", 4, 4)
    return net.node("Softmax", net.node("Add", x, net.node("Relu", x)))


def branch(net, name, width):
    """A graph that multiplies the outer x by a matrix of this width, and by another back."""
    inner = Net(name, external=False)
    y = inner.node("MatMul", "x", inner.weight(4, width, name=f"{name}_w"), name=f"{name}_up")
    y = inner.node("MatMul", y, inner.weight(width, 4, name=f"{name}_v"), name=f"{name}_down")
    inner.output(y)
    return helper.make_graph(inner.nodes, name, [], inner.outputs, inner.weights)


def either(net, condition):
    net.input("x", 2, 4)
    return net.node("If", condition, name="either", then_branch=branch(net, "light", 8),
                    else_branch=branch(net, "heavy", 32))


@small
def if_unknown(net):
    return either(net, net.input("which", kind=BOOL))


@small
def if_computed(net):
    first = net.node("Gather", net.input("y", 3), net.values(0, shape=()))
    return either(net, net.node("Cast", first, to=BOOL))


@small
def if_known(net):
    x_length = net.node("Gather", net.node("Shape", "x"), net.values(0, shape=()))
    return either(net, net.node("Equal", x_length, net.values(2, shape=())))


def loop_body(stops):
    """The carried x times a square matrix; each turn's x is kept as well."""
    inner = Net("body", external=False)
    y = inner.node("MatMul", "carried", inner.weight(4, 4, name="square"), name="turn")
    go_on = "stop_now" if stops else inner.node("Identity", "go_on")
    nodes = [*inner.nodes]
    if stops:
        nodes.append(helper.make_node("Cast", [inner.node("ReduceSum", y, keepdims=0)], ["stop_now"], to=BOOL))
        nodes = inner.nodes + nodes[-1:]
    info = helper.make_tensor_value_info
    inputs = [info("turn_number", INT64, []), info("go_on", BOOL, []), info("carried", FLOAT, None)]
    outputs = [info(go_on, BOOL, []), info(y, FLOAT, None), info(y, FLOAT, None)]
    return helper.make_graph(nodes, "body", inputs, outputs, inner.weights)


@small
def loop_known(net):
    turns = net.values(10, shape=())
    return net.node("Loop", turns, "", net.input("x", 3, 4), outputs=2, name="loop", body=loop_body(False))


@small
def loop_unknown(net):
    often = net.input("often", kind=INT64)
    return net.node("Loop", often, "", net.input("x", 3, 4), outputs=2, name="loop", body=loop_body(True))


@small
def loop_counted(net):
    often = net.input("often", kind=INT64)
    return net.node("Loop", often, "", net.input("x", 3, 4), outputs=2, name="loop", body=loop_body(False))


@small
def scan(net):
    inner = Net("body", external=False)
    y = inner.node("Add", "state", inner.node("MatMul", "slice", inner.weight(6, 4, name="w")))
    info = helper.make_tensor_value_info
    body = helper.make_graph(inner.nodes, "body", [info("state", FLOAT, [1, 4]), info("slice", FLOAT, [1, 6])],
                             [info(y, FLOAT, [1, 4]), info(y, FLOAT, [1, 4])], inner.weights)
    return net.node("Scan", net.input("start", 1, 4), net.input("steps", "time", 1, 6), outputs=2, body=body,
                    num_scan_inputs=1)


def passed_on(name, given):
    """An attribute of a node in a function: what the call gives under another name."""
    return onnx.AttributeProto(name=name, ref_attr_name=given, type=onnx.AttributeProto.INT)


@small
def function(net):
    """Two functions, one calling the other; an attribute goes through both."""
    turn = helper.make_node("Gemm", ["a", "b"], ["c"], name="product")
    turn.attribute.append(passed_on("transB", "turned"))
    inner = helper.make_function("local", "Product", ["a", "b"], ["c"], [turn], [helper.make_opsetid("", 17)],
                                 ["turned"])
    call = helper.make_node("Product", ["x", "w"], ["y"], domain="local", name="inner")
    call.attribute.append(passed_on("turned", "flag"))
    add = helper.make_node("Add", ["y", "bias"], ["z"], name="add")
    outer = helper.make_function("local", "Linear", ["x", "w", "bias"], ["z"], [call, add],
                                 [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)], ["flag"])
    net.functions += [inner, outer]
    x = net.input("x", "batch", 6)
    x = net.node("Linear", x, net.weight(5, 6), net.weight(5), domain="local", name="first", flag=1)
    return net.node("Linear", x, net.weight(5, 3), net.weight(3), domain="local", name="second", flag=0)


@small
def shared(net):
    """One weight under three names."""
    w, x = net.weight(16, 16, name="w"), net.input("x", 2, 16)
    x = net.node("MatMul", net.node("MatMul", x, w), net.node("Identity", w))
    return net.node("MatMul", x, net.node("Transpose", w, perm=[1, 0]))


@small
def attention_23(net):
    net.opsets[""] = 23
    q, k = net.input("q", 2, 8, 10, 16), net.input("k", 2, 2, 30, 16)
    return net.node("Attention", q, k, net.input("v", 2, 2, 30, 24))


@small
def many_heads(net):
    q, k = net.input("q", "batch", 10, 64), net.input("k", "batch", 30, 64)
    return net.node("MultiHeadAttention", q, k, net.input("v", "batch", 30, 32), domain=OWN, num_heads=4)


@small
def group_query(net):
    q, k, v = net.input("q", 1, 1, 64), net.input("k", 1, 1, 16), net.input("v", 1, 1, 16)
    past = net.input("past_k", 1, 2, 99, 8), net.input("past_v", 1, 2, 99, 8)
    return net.node("GroupQueryAttention", q, k, v, *past, net.input("lengths", 1, kind=TensorProto.INT32),
                    net.input("total", kind=TensorProto.INT32), domain=OWN, num_heads=8, kv_num_heads=2, outputs=3)


@small
def quantized(net):
    x = net.input("x", 1, 4, 8, 8)
    scale, zero = net.values(0.1, kind=np.float32, shape=()), net.values(0, kind=np.uint8, shape=())
    x = net.node("QuantizeLinear", x, scale, zero)
    weight, wzero = net.weight(8, 4, 3, 3, kind=TensorProto.INT8), net.values(0, kind=np.int8, shape=())
    bias = net.weight(8, kind=TensorProto.INT32)
    x = net.node("QLinearConv", x, scale, zero, weight, scale, wzero, scale, zero, bias)
    x = net.node("Flatten", net.node("DequantizeLinear", x, scale, zero))
    packed = net.weight(16, 9, 16, kind=TensorProto.UINT8)  # 288 by 16, four bits each
    return net.node("MatMulNBits", x, packed, net.weight(16 * 9), domain=OWN, K=288, N=16, bits=4, block_size=32)


@small
def fused(net):
    x = net.node("FusedConv", net.input("x", 1, 4, 8, 8), net.weight(8, 4, 1, 1), net.weight(8), domain=OWN,
                 activation="Relu")
    x = net.node("Reshape", x, net.values(1, 8, 64))
    return net.node("FusedMatMul", x, net.input("y", 1, 5, 64), domain=OWN, transB=1, alpha=0.5)


@small
def old_style(net):
    """Opset 7: attributes where inputs are today."""
    net.opsets[""] = 7
    x = net.conv(net.input("x", 1, 3, 10, 10), 3, 4, 3)
    x = net.node("Upsample", x, scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")
    x = net.node("Slice", x, starts=[2, 0], ends=[-2, 9223372036854775807], axes=[2, 3])
    x = net.node("Unsqueeze", net.node("Squeeze", x, axes=[0]), axes=[0])
    return net.node("Pad", net.node("ReduceMean", x, axes=[1], keepdims=1), pads=[0, 0, 1, 1, 0, 0, 1, 1])


@small
def from_tensorflow(net):
    """As tf2onnx writes them: channels last, turned around each convolution, shapes computed in between."""
    x = net.node("Transpose", net.input("x", "unk__1", 9, 9, 3), perm=[0, 3, 1, 2])
    x = net.node("Conv", x, net.weight(8, 3, 3, 3), net.weight(8), auto_pad="SAME_UPPER", strides=[2, 2], name="conv")
    x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    x = net.node("Transpose", x, perm=[0, 2, 3, 1])
    shape = net.node("Cast", net.node("Shape", x), to=TensorProto.INT32)
    count = net.node("Slice", shape, net.values(0), net.values(1), net.values(0))
    flat = net.node("ReduceProd", net.node("Slice", shape, net.values(1), net.values(4)), axes=[0], keepdims=1)
    to = net.node("Cast", net.node("Concat", count, flat, axis=0), to=INT64)
    return net.node("MatMul", net.node("Reshape", x, to), net.weight(72, 5), name="dense")


@small
def unknown_operator(net):
    x = net.node("MatMul", net.input("x", 2, 4), net.weight(4, 4))
    net.infos.append(helper.make_tensor_value_info("Strange_1", FLOAT, [2, 4]))
    x = net.node("Strange", x, domain="some.where")
    return net.node("MatMul", x, net.weight(4, 3))


@small
def data_dependent(net):
    picked = net.node("Transpose", net.node("NonZero", net.input("x", 10)), perm=[1, 0])
    x = net.node("Cast", picked, to=FLOAT)
    return net.node("MatMul", x, net.weight(1, 3), name="after")


@small
def unsorted(net):
    a = net.node("Relu", net.input("x", 2, 2))
    b = net.node("Neg", a)
    net.nodes.reverse()
    return b


@small
def halved(net):
    """What a conversion to half precision has to mind: scales that stay, constants of every kind, casts."""
    scales = net.constant([1, 1, 2, 2])
    x = net.node("Resize", net.input("x", "batch", 3, 8, 8), "", scales, mode="nearest")
    x = net.node("Mul", x, net.node("Constant", value_float=0.5))
    x = net.node("Add", x, net.node("Constant", value_floats=[float(i) for i in range(16)]))
    shape = net.node("Shape", x)
    x = net.node("Add", x, net.node("ConstantOfShape", shape))
    x = net.node("Div", x, net.node("ReduceMax", net.node("Cast", shape, to=FLOAT), keepdims=0))
    net.weights.append(helper.make_tensor("listed", FLOAT, [4, 3, 1, 1], [0.3 * i for i in range(12)]))
    x = net.node("Conv", x, "listed")
    return x, net.node("Relu", x)


@small
def sized_by_floats(net):
    """As torch writes interpolate(scale_factor=…): sizes that half precision does not have."""
    x = net.input("x", 1, 1, 2049, 5)
    size = net.node("Slice", net.node("Shape", x), net.values(2), net.values(4))
    size = net.node("Floor", net.node("Mul", net.node("Cast", size, to=FLOAT), net.constant([1.5, 1])))
    size = net.node("Concat", net.values(1, 1), net.node("Cast", size, to=INT64), axis=0)
    return net.node("Conv", net.node("Resize", x, "", "", size, mode="nearest"), net.weight(2, 1, 1, 1))


@small
def spectrum(net):
    net.opsets[""] = 20
    x = net.input("x", "batch", 4000, 1)
    window = net.node("Cast", net.node("HannWindow", net.values(400, shape=())), to=FLOAT)
    frames = net.node("STFT", x, net.values(160, shape=()), window, net.values(400, shape=()))
    mel = net.node("MelWeightMatrix", net.values(80, shape=()), net.values(400, shape=()), net.values(16000, shape=()),
                   net.values(0.0, kind=np.float32, shape=()), net.values(8000.0, kind=np.float32, shape=()))
    power = net.node("ReduceSum", net.node("Mul", frames, frames), net.values(-1), keepdims=0)
    whole = net.node("DFT", x, net.values(4096, shape=()), net.values(1, shape=()), onesided=1)
    back = net.node("DFT", net.input("z", 2, 6, 100, 2), "", net.values(-2, shape=()), inverse=1)
    return net.node("MatMul", power, mel), frames, whole, back


@small
def spectrum_old(net):
    """Opset 17: the axis is an attribute, and 1."""
    return net.node("DFT", net.input("x", 3, 64, 5, 1)), net.node("DFT", "x", axis=2, onesided=1)


@small
def losses(net):
    scores, labels = net.input("scores", "batch", 10, 7), net.input("labels", "batch", 7, kind=INT64)
    loss, logs = net.node("SoftmaxCrossEntropyLoss", scores, labels, net.weight(10), outputs=2)
    each = net.node("NegativeLogLikelihoodLoss", logs, labels, reduction="none")
    return loss, logs, each, net.node("NegativeLogLikelihoodLoss", logs, labels)


ML = "ai.onnx.ml"


@small
def classic_linear(net):
    x = net.node("Scaler", net.input("x", "batch", 6), domain=ML, offset=[0.0] * 6, scale=[1.0] * 6)
    label, scores = net.node("LinearClassifier", x, outputs=2, domain=ML, classlabels_ints=[0, 1, 2],
                             coefficients=[0.1] * 18, intercepts=[0.0] * 3, post_transform="SOFTMAX")
    value = net.node("LinearRegressor", net.node("Normalizer", x, domain=ML, norm="L2"), domain=ML,
                     coefficients=[0.1] * 12, intercepts=[0.0] * 2, targets=2)
    net.kinds[label] = INT64
    return scores, value, label


@small
def classic_vectors(net):
    """Five vectors of four numbers; three classes, of which each pair has a score."""
    x = net.input("x", "batch", 4)
    value = net.node("SVMRegressor", x, domain=ML, coefficients=[0.5] * 5, support_vectors=[0.25] * 20, n_supports=5,
                     kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0], rho=[0.0])
    label, scores = net.node("SVMClassifier", x, outputs=2, domain=ML, classlabels_ints=[0, 1, 2],
                             coefficients=[0.5] * 10,
                             support_vectors=[0.25] * 20, vectors_per_class=[2, 2, 1], kernel_type="LINEAR",
                             kernel_params=[0.0, 0.0, 3.0], rho=[0.0] * 3)
    net.kinds[label] = INT64
    return value, scores, label


@small
def classic_trees(net):
    """Two trees of one question each, and what comes before and after them."""
    net.opsets[ML] = 3
    x = net.node("FeatureVectorizer", net.input("x", "batch", 2), net.input("y", "batch", 1), domain=ML,
                 inputdimensions=[2, 1])
    tree = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[1, 0, 0],
                nodes_values=[0.5, 0.0, 0.0],
                nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
    label, scores = net.node("TreeEnsembleClassifier", x, outputs=2, domain=ML, classlabels_strings=["a", "b"],
                             class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 1.0],
                             **tree)
    value = net.node("TreeEnsembleRegressor", x, domain=ML, n_targets=1, target_treeids=[0, 0], target_nodeids=[1, 2],
                     target_ids=[0, 0], target_weights=[1.0, 2.0], **tree)
    number = net.node("LabelEncoder", label, domain=ML, keys_strings=["a", "b"], values_int64s=[7, 8])
    hot = net.node("OneHotEncoder", number, domain=ML, cats_int64s=[7, 8, 9])
    picked = net.node("ArrayFeatureExtractor", scores, net.values(1), domain=ML)
    net.node("ZipMap", scores, domain=ML, classlabels_strings=["a", "b"])
    return scores, value, hot, picked


@small
def texts(net):
    """Words in rows: joined, made small, split, counted."""
    STRING = TensorProto.STRING
    x = net.input("x", "batch", kind=STRING)
    net.opsets[""] = 20
    joined = net.node("StringConcat", x, x)
    lower = net.node("StringNormalizer", joined, case_change_action="LOWER", locale="C")
    parts, counts = net.node("StringSplit", lower, outputs=2, delimiter=" ")
    matched = net.node("RegexFullMatch", lower, pattern="a.*")
    found = net.node("TfIdfVectorizer", net.input("ids", "batch", 6, kind=INT64), mode="TF", min_gram_length=1,
                     max_gram_length=2, max_skip_count=0, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2],
                     pool_int64s=[2, 3, 5, 4])
    net.kinds.update({lower: STRING, parts: STRING, counts: INT64, matched: BOOL})
    return found, lower, parts, counts, matched


# ---- broken ones ------------------------------------------------------------------------------------------------
@small
def broken_cycle(net):
    net.input("x", 2)
    net.nodes += [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    return "b"


@small
def broken_twice(net):
    net.input("x", 2)
    net.nodes += [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["a"])]
    return "a"


@small
def broken_missing(net):
    net.input("x", 2)
    return net.node("Add", "x", "nowhere")


@small
def broken_huge(net):
    x = net.input("x", 2 ** 40, 2 ** 40)
    return net.node("Relu", x)


@small
def broken_product(net):
    """Every dimension is possible, and their product is not."""
    x = net.input("x", 2 ** 31, 1)
    return net.node("Expand", net.node("Relu", x), net.values(2 ** 31, 2 ** 31, 2 ** 31))


@small
def broken_recursion(net):
    call = helper.make_node("Again", ["x"], ["y"], domain="local")
    net.functions.append(helper.make_function("local", "Again", ["x"], ["y"], [call],
                                              [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]))
    return net.node("Again", net.input("x", 2), domain="local")


@small
def broken_bomb(net):
    """Twenty functions, each calling the next one four times: a million million nodes."""
    for i in range(20):
        op, domain = ("Relu", "") if i == 19 else (f"F{i + 1}", "local")
        chain = ["x", "a", "b", "c", "y"]
        calls = [helper.make_node(op, [chain[k]], [chain[k + 1]], domain=domain) for k in range(4)]
        net.functions.append(helper.make_function("local", f"F{i}", ["x"], ["y"], calls,
                                                  [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]))
    return net.node("F0", net.input("x", 2), domain="local")


@small
def broken_short(net):
    net.weight(4, 4, name="w")
    net.weights[-1].raw_data = bytes(10)
    return net.node("MatMul", net.input("x", 2, 4), "w")


def outside(name, location, offset=0, length=64):
    def make(net):
        net.weights.append(TensorProto(name="w", data_type=FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL))
        for key, value in (("location", location), ("offset", offset), ("length", length)):
            net.weights[-1].external_data.add(key=key, value=str(value))
        return net.node("MatMul", net.input("x", 2, 4), "w")
    make.__name__ = name
    small(make)


outside("outside_missing", "nowhere.data")
outside("broken_above", "../secret.data")
outside("broken_absolute", "/etc/passwd")
outside("broken_around", "a/../../secret.data")
outside("broken_offset", "outside.data", offset=1 << 62)
outside("broken_end", "outside.data", offset=4096)
outside("broken_number", "outside.data", offset="12x")
outside("broken_length", "outside.data", length=8)


@small
def outside_tied(net):
    """Two names of the same bytes beside the model."""
    for name in "ab":
        net.weights.append(TensorProto(name=name, data_type=FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL))
        for key, value in (("location", "outside.data"), ("offset", 0), ("length", 64)):
            net.weights[-1].external_data.add(key=key, value=str(value))
    return net.node("MatMul", net.node("MatMul", net.input("x", 2, 4), "a"), "b")


MODELS = {model.__name__: model for model in (resnet50, mobilenetv2, vit_b_16, bert_base, bert_fused, gpt2)}


if __name__ == "__main__":
    inline = sys.argv[1] == "--inline"
    place, *names = sys.argv[1 + inline:]
    for wanted in [name for name in names if name != "small"] + (list(SMALL) if "small" in names else []):
        net = {**MODELS, **SMALL}[wanted]()
        print(net.save_inline(place) if inline else net.save(place))
    if "small" in names:
        with open(os.path.join(place, "outside.data"), "wb") as file:
            file.write(bytes(1024))
