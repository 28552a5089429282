"""Writes ONNX models: the ones whose cost is published, layer by layer, and small ones around single operators.

usage: onnx_models.py FOLDER NAME...     run by a Python that has onnx

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
        self.opsets = {"": 17}

    def node(self, op, *inputs, name="", outputs=1, domain="", **attributes):
        made = [f"{name or op}_{len(self.nodes)}_{i}" if outputs > 1 else f"{name or op}_{len(self.nodes)}"
                for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), made, name=name or made[0], domain=domain, **attributes))
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
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights, value_info=self.infos)
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
        return self.node("LayerNormalization", x, self.weight(width), *([self.weight(width)] if bias else []), axis=-1)

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
        scores = self.node("MatMul", self.heads(q, heads, depth), self.heads(k, heads, depth, (0, 2, 3, 1)), name="scores")
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
    x = net.node("Add", net.node("Gather", words, ids), net.node("Gather", net.weight(1024, 768, name="places"), places))
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


MODELS = {model.__name__: model for model in (resnet50, mobilenetv2, vit_b_16, bert_base, bert_fused, gpt2)}


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        print(MODELS[wanted]().save(sys.argv[1]))
