"""Programs that train with torch."""
from ._table import ALL, PLAIN, TORCH, add_torch, add_training, join

add_training("model and optimizer of the module", """
    print("%.6f" % train(70).item())
""", expect="0.", modes=ALL)
add_training("exit in the middle of a step", """
    import sys
    model.register_forward_hook(lambda *words: sys.exit(6) if train.__dict__.setdefault("n", 0) == 20
                                else train.__dict__.update(n=train.n + 1))
    train(100)
""", status=6)
add_training("exception in forward", """
    train(3)
    model(torch.ones(3, 5))
""", expect="mat1 and mat2 shapes cannot be multiplied", status=1, modes=ALL)
add_torch("exception in a worker's dataset", """
    import torch
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            if index == 5:
                raise ValueError("no such item")
            return torch.ones(2) * index
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
        print(batch.shape)
""", expect="ValueError: no such item", status=1)
for _method in ("fork", "spawn", "forkserver"):
    add_torch("loader's workers by " + _method, """
        import torch
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, index):
                return torch.ones(3) * index
        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, persistent_workers=True,
                                                 multiprocessing_context="%s")
            for _ in range(2):
                print([batch.sum().item() for batch in loader])
    """ % _method, expect="[18.0, 66.0, 114.0]")
add_torch("import torch.distributed", """
    import torch
    import torch.distributed
    import torch.distributed as dist
    from torch.distributed import *
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(70):
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        optimizer.step()
    print("done")
""", expect="done")
add_torch("DDP with two ranks", """
    import os, sys, torch, torch.distributed as dist, torch.multiprocessing as multiprocessing
    def work(rank, folder):
        dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(40):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        if rank == 0:
            print("trained", flush=True)
        dist.destroy_process_group()
    if __name__ == "__main__":
        multiprocessing.spawn(work, (os.getcwd(),), nprocs=2)
""", expect="trained", modes=PLAIN, compares_files=False)
add_training("torch.compile", """
    import logging
    torch._logging.set_logs(all=logging.ERROR)  # warnings have times in them
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for size in (3, 3, 5):
        print(compiled(torch.ones(size, 4)).shape)
    @torch.compile(backend="eager")
    def step():
        optimizer.step()
    model(torch.ones(1, 4)).sum().backward()
    step()
    print(torch._dynamo.utils.counters["graph_break"], torch._dynamo.utils.counters["stats"])
""", expect="torch.Size([5, 2])")
add_training("save, load and pickle", """
    import copy, io, pickle, pickletools
    train(20)
    torch.save(model, "model.pt"); torch.save(optimizer.state_dict(), "optimizer.pt"); torch.save(optimizer, "whole.pt")
    copied = copy.deepcopy((model, optimizer))
    for data in (pickle.dumps(model), pickle.dumps(optimizer), pickle.dumps(copied)):
        print(b"tare" in data)  # its length depends on addresses, which are written in digits
    print(pickle.loads(pickle.dumps(optimizer)))
    print(sorted(vars(model)), sorted(vars(optimizer)))
    torch.load("model.pt", weights_only=False)
""", expect="False")

# ---- in one interpreter ----------------------------------------------------------------------------------------------

join("exception in a module's own forward", """
    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("in forward")
    torch.nn.Sequential(Fails())(torch.ones(1))
""", "ValueError: in forward")
join("exception in backward", """
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            raise ValueError("in backward")
    Fails.apply(model(torch.ones(3, 4))).sum().backward()
""", "ValueError: in backward")
join("backward twice", """
    loss = model(torch.ones(3, 4)).sum()
    loss.backward()
    loss.backward()
""", "Trying to backward through the graph a second time")
join("optimizer without parameters", """
    import torch
    torch.optim.SGD([], lr=0.1)
""", "ValueError: optimizer got an empty parameter list", imports="")
join("exception in an optimizer's step", """
    class Fails(torch.optim.SGD):
        def step(self, closure=None):
            raise ValueError("in step")
    train(1, optimizer=Fails(model.parameters(), lr=0.1))
""", "ValueError: in step")
join("exception in a dataset", """
    import torch
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            if index == 5:
                raise IndexError("no such item")
            return torch.ones(2) * index
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2):
        print(batch.shape)
""", "IndexError: no such item", imports="")
join("torch.jit and torch.export", """
    print(torch.jit.script(model).code)
    print(torch.jit.trace(model, torch.ones(1, 4)).graph)
    print(torch.export.export(model, (torch.ones(1, 4),)).graph_module.code)
    print(torch.fx.symbolic_trace(model).code)
""", "def forward")
join("loop kept in lists", """
    losses = [train(1) for _ in range(60)]
    total = 0
    for _ in range(60):
        total = total + train(1)
    print(len(losses), total.requires_grad)
""", "60 True")
join("anomalies", """
    with torch.autograd.detect_anomaly():
        x = torch.zeros(1, requires_grad=True)
        (torch.sqrt(x) * 0).sum().backward()
""", "returned nan values")
join("many models and optimizers", """
    for _ in range(30):
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(2, model, optimizer)
    import gc; gc.collect()
    print("done")
""", "done")
