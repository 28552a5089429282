"""Steps and epochs as they are found in training loops of many shapes, in one recorded process: after each loop the
script prints how many more there are."""
import json

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

PROLOGUE = """
    import json, torch
    from torch import nn
    from torch.utils.data import DataLoader, IterableDataset, TensorDataset
    import tare
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(32, 8), torch.randint(0, 3, (32,)))
    loss_fn = nn.CrossEntropyLoss()
    found = {}

    def net():
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def loop(function):
        before = tare._core.torch_counts()
        function()
        with torch.no_grad():
            net()(torch.randn(4, 8))  # whatever comes next: no rest of the loop's batches is waited for any more
        after = tare._core.torch_counts()
        found[function.__name__] = [b - a for a, b in zip(before, after)]
        return function
"""

LOOPS = """
    @loop
    def plain():
        model, loader = net(), DataLoader(data, batch_size=8)
        opt = torch.optim.Adam(model.parameters())
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
        for _ in range(3):
            for x, y in loader:
                opt.zero_grad()
                loss_fn(model(x), y).backward()
                opt.step()
                schedule.step()

    @loop
    def evaluated_inside_and_out():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model.train()
            for x, y in DataLoader(data, batch_size=8):
                loss_fn(model(x), y).backward()
                opt.step()
            model.eval()
            for x, y in DataLoader(data, batch_size=4):
                with torch.no_grad():
                    model(x)
            with torch.inference_mode():
                for x, y in DataLoader(data, batch_size=4):
                    model(x)

    @loop
    def accumulated():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for index, (x, y) in enumerate(DataLoader(data, batch_size=4)):
            loss_fn(model(x), y).backward()
            if index % 4 == 3:
                opt.step()
                opt.zero_grad()

    def accumulate(model, opt):  # 11 batches, a step for each four
        for index, (x, y) in enumerate(DataLoader(data, batch_size=3)):
            loss_fn(model(x), y).backward()
            if index % 4 == 3:
                opt.step()
                opt.zero_grad()

    @loop
    def a_rest_of_each_epoch():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            accumulate(model, opt)

    @loop
    def a_rest_and_an_evaluation():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model.train()
            accumulate(model, opt)
            model.eval()
            with torch.no_grad():
                for x, y in DataLoader(data, batch_size=4):
                    model(x)

    @loop
    def a_rest_behind_the_loop():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            accumulate(model, opt)
            opt.step()
            opt.zero_grad()

    @loop
    def a_step_for_all_batches():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            for x, y in DataLoader(data, batch_size=8):
                loss_fn(model(x), y).backward()
            opt.step()
            opt.zero_grad()

    @loop
    def fewer_steps_than_epochs():
        model, batches = net(), 0
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            for x, y in DataLoader(data, batch_size=8):
                loss_fn(model(x), y).backward()
                batches += 1
                if batches % 10 == 0:
                    opt.step()
                    opt.zero_grad()

    @loop
    def updated_by_hand():
        model = net()
        for _ in range(3):
            for x, y in DataLoader(data, batch_size=8):
                model.zero_grad()
                loss_fn(model(x), y).backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.1 * p.grad

    @loop
    def a_critic_that_trains_more_often():
        maker, judge = net(), nn.Linear(3, 1)
        one, other = torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())
        for _ in range(20):
            for _ in range(5):
                judge(maker(torch.randn(8, 8)).detach()).mean().backward()
                one.step()
            judge(maker(torch.randn(8, 8))).mean().backward()
            other.step()

    @loop
    def an_optimizer_that_steps_now_and_then():
        model, other = net(), net()
        often, seldom = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
        for index in range(40):
            model(torch.randn(8, 8)).sum().backward()
            often.step()
            if index % 10 == 9:
                other(torch.randn(8, 8)).sum().backward()
                seldom.step()

    def update(model, opt):
        model(torch.randn(8, 8)).sum().backward()
        opt.step()

    @loop
    def a_policy_that_is_updated_every_other_time():
        models = [net(), net(), net()]
        opts = [torch.optim.Adam(model.parameters()) for model in models]
        for index in range(40):
            update(models[0], opts[0])
            if index % 2:
                update(models[1], opts[1])
                update(models[2], opts[2])

    @loop
    def a_maker_that_trains_every_fifth_time():
        maker, judge = net(), nn.Linear(8, 1)
        one, other = torch.optim.SGD(judge.parameters(), lr=0.1), torch.optim.Adam(maker.parameters())
        for index in range(40):
            if index % 5 == 0:
                update(maker, other)
            update(judge, one)

    @loop
    def a_critic_in_a_function():
        maker, judge = net(), nn.Linear(8, 1)
        one, other = torch.optim.SGD(judge.parameters(), lr=0.1), torch.optim.Adam(maker.parameters())

        def judge_it(left):
            while left:
                update(judge, one)
                left -= 1

        for _ in range(20):
            judge_it(3)
            update(maker, other)

    @loop
    def twice_and_once():
        maker, judge = net(), nn.Linear(8, 1)
        one, other = torch.optim.SGD(judge.parameters(), lr=0.1), torch.optim.Adam(maker.parameters())
        for _ in range(20):
            update(judge, one)
            update(judge, one)
            update(maker, other)

    @loop
    def updated_by_hand_beside_an_optimizer():
        model = net()
        idle = torch.optim.SGD(model.parameters(), lr=0.1)
        for index in range(20):
            model(torch.randn(8, 8)).sum().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
                    p.grad.zero_()

    @loop
    def accumulated_beside_an_idle_optimizer():
        model = net()
        opt, idle = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
        for index in range(20):
            for _ in range(8):
                model(torch.randn(8, 8)).sum().backward()
            opt.step()
            opt.zero_grad()

    @loop
    def one_optimizer_after_the_other():
        models = [net(), net()]
        opts = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
        for at in (0, 1, 0):
            for _ in range(10):
                models[at](torch.randn(8, 8)).sum().backward()
                opts[at].step()

    @loop
    def gan():
        maker, judge = net(), nn.Linear(3, 1)
        one, other = torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())
        for x, y in DataLoader(data, batch_size=8):
            judge(maker(x).detach()).mean().backward()
            one.step()
            judge(maker(x)).mean().backward()
            other.step()

    @loop
    def gan_without_a_loader():
        maker, judge = net(), nn.Linear(3, 1)
        one, other = torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())
        for _ in range(6):
            x = torch.randn(8, 8)
            judge(maker(x).detach()).mean().backward()
            one.step()
            judge(maker(x)).mean().backward()
            other.step()

    @loop
    def without_a_loader():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(7):
            model(torch.randn(8, 8)).sum().backward()
            opt.step()

    @loop
    def without_a_module():
        weight = torch.randn(8, 3, requires_grad=True)
        opt = torch.optim.SGD([weight], lr=0.1)
        for _ in range(5):
            (torch.randn(4, 8) @ weight).sum().backward()
            opt.step()

    @loop
    def scaled():
        model, scaler = net(), torch.amp.GradScaler("cpu")
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for index, (x, y) in enumerate(DataLoader(data, batch_size=8)):
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            if index == 1:
                loss = loss * float("inf")  # the scaler leaves this step out; the loop makes it all the same
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()

    @loop
    def closure():
        model = net()
        opt = torch.optim.LBFGS(model.parameters(), max_iter=2)
        for x, y in DataLoader(data, batch_size=8):
            def again():
                opt.zero_grad()
                loss = loss_fn(model(x), y)
                loss.backward()
                return loss
            opt.step(again)

    @loop
    def stream():
        class Stream(IterableDataset):
            def __iter__(self):
                return iter(data)
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for x, y in DataLoader(Stream(), batch_size=8):
                loss_fn(model(x), y).backward()
                opt.step()

    @loop
    def fetched_one_ahead():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            batches = iter(DataLoader(data, batch_size=8))
            ahead = next(batches)
            while ahead is not None:
                (x, y), ahead = ahead, next(batches, None)
                loss_fn(model(x), y).backward()
                opt.step()

    @loop
    def left_early():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(data, batch_size=4)
        for _ in range(2):
            for index, (x, y) in enumerate(loader):
                if index == 3:
                    break
                loss_fn(model(x), y).backward()
                opt.step()
        model.eval()
        next(iter(loader))

    @loop
    def looked_at():
        model, loader = net(), DataLoader(data, batch_size=8)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        next(iter(loader))
        for _ in range(2):
            next(iter(loader))
            for x, y in loader:
                loss_fn(model(x), y).backward()
                opt.step()
        next(iter(loader))

    @loop
    def skipped():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for index, (x, y) in enumerate(DataLoader(data, batch_size=8)):
                if index == 1:
                    continue
                loss_fn(model(x), y).backward()
                opt.step()

    @loop
    def never_trained():
        model = net()
        for x, y in DataLoader(data, batch_size=8):
            pass
        for x, y in DataLoader(data, batch_size=8):
            break

    @loop
    def two_loaders():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        one, other = DataLoader(data, batch_size=8), DataLoader(data, batch_size=8)
        for _ in range(2):
            for (x, y), (z, _) in zip(one, other):
                (loss_fn(model(x), y) + model(z).mean()).backward()
                opt.step()

    @loop
    def raising():
        model = net()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for index, (x, y) in enumerate(DataLoader(data, batch_size=8)):
            try:
                loss_fn(model(x if index % 2 else x[:, :3]), y).backward()
            except RuntimeError:
                continue
            opt.step()

    @loop
    def only_inference():
        model = net().eval()
        for x, y in DataLoader(data, batch_size=8):
            with torch.no_grad():
                model(x)
    print(json.dumps(found))
"""

EXPECTED = {  # loop: (steps, epochs)
    "plain": (12, 3),
    "evaluated_inside_and_out": (8, 2),
    "accumulated": (2, 1),
    "a_rest_of_each_epoch": (8, 4),  # batches for which no optimizer stepped are no step
    "a_rest_and_an_evaluation": (6, 3),
    "a_rest_behind_the_loop": (9, 3),
    "a_step_for_all_batches": (5, 5),
    "fewer_steps_than_epochs": (2, 6),
    "updated_by_hand": (12, 3),
    "a_critic_that_trains_more_often": (24, 0),  # five of the first round, until its pattern is known
    # Two in the first, since the second optimizer might have stepped too.
    "an_optimizer_that_steps_now_and_then": (39, 0),
    "a_policy_that_is_updated_every_other_time": (39, 0),
    "a_maker_that_trains_every_fifth_time": (39, 0),
    "a_critic_in_a_function": (22, 0),
    "twice_and_once": (21, 0),
    "updated_by_hand_beside_an_optimizer": (19, 0),  # two in the first
    "accumulated_beside_an_idle_optimizer": (19, 0),
    "one_optimizer_after_the_other": (29, 0),  # two in the first: the second optimizer might have stepped too
    "gan": (4, 1),
    "gan_without_a_loader": (6, 0),
    "without_a_loader": (7, 0),
    "without_a_module": (5, 0),
    "scaled": (4, 1),
    "closure": (4, 1),
    "stream": (8, 2),
    "fetched_one_ahead": (8, 2),
    "left_early": (6, 2),  # a batch that is asked for and not trained on is no step
    "looked_at": (8, 2),
    "skipped": (6, 2),
    "never_trained": (0, 0),
    "two_loaders": (8, 2),
    "raising": (2, 1),
    "only_inference": (0, 0),
}


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    from conftest import Bench
    bench = Bench(tmp_path_factory.mktemp("loops"))
    done = bench.recorded(PROLOGUE + LOOPS)
    assert done.err == ""
    done.found = json.loads(done.out)
    return done


@pytest.mark.parametrize("name", EXPECTED)
def test_steps_and_epochs(loops, name):
    steps, epochs = EXPECTED[name]
    assert loops.found[name][0] == steps
    assert epochs is None or loops.found[name][1] == epochs


def test_every_loop_is_checked(loops):
    assert sorted(loops.found) == sorted(EXPECTED)


def test_the_trace_has_what_was_counted(loops):
    steps = sum(found[0] for found in loops.found.values())
    rows = [row for row in loops.report.steps if row.name == "step"]
    assert sum(row.count for row in rows) == steps


def test_phases_are_in_steps(loops):
    spans = loops.report.spans
    inside = {row.name for row in spans if row.kind == "phase" and row.depth > 0}
    assert inside >= {"data", "forward", "backward", "optimizer"}
