"""The table of programs, and how one is entered into it."""
import dataclasses
import textwrap

PLAIN = ((),)
TORCH = ((), ("--ops", "--shapes"))
ALL = ((), ("--ops",), ("--ops", "--shapes"))
SEEN = ["print(os.environ.get('TARE_SESSION'))", "print(os.getppid())"]


@dataclasses.dataclass
class Program:
    """A script, how it is started, and what shows that it did what it is there for."""
    files: dict
    words: tuple = ("PYTHON", "script.py")
    expect: str = ""
    status: int = 0
    needs: tuple = ()
    modes: tuple = PLAIN
    env: dict = dataclasses.field(default_factory=dict)
    text_in: str = ""
    compares_files: bool = True
    every: bool = False  # in all of its modes: others with torch, whose start takes seconds, take turns
    joined: tuple = ()  # texts that the programs that were joined show

    def modes_at(self, place):
        """The modes to run, for the program at this place of the table."""
        if self.every or "torch" not in self.needs:
            return self.modes
        return (self.modes[place % len(self.modes)],)

    def changed(self, code):
        return dataclasses.replace(self, files={"script.py": code}, expect="")


PROGRAMS = {}


def add(name, code, *, options=(), more=None, **named):
    assert name not in PROGRAMS, name
    if "words" not in named:
        named["words"] = ("PYTHON", *options, "script.py")
    PROGRAMS[name] = Program({"script.py": code, **(more or {})}, **named)


def add_torch(name, code, *, needs=(), modes=TORCH, **named):
    add(name, code, needs=("torch", *needs), modes=modes, **named)


MODEL = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    def train(steps, model=model, optimizer=optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(torch.ones(3, 4)).square().mean()
            loss.backward()
            optimizer.step()
        return loss
"""


def add_training(name, code, **named):
    add_torch(name, textwrap.dedent(MODEL) + textwrap.dedent(code), **named)


# ---- programs that end as any other ---------------------------------------------------------------------------------
# What they do is compared, not how they end: they run in one interpreter, in all modes.
JOINED = "one after the other"
JOIN = """
    import os, sys, traceback
    for name in sorted(os.listdir("parts")):
        print("==", name, flush=True)
        print("==", name, file=sys.stderr, flush=True)
        try:
            exec(compile(open("parts/" + name).read(), name, "exec"), {"__name__": "__main__"})
        except Exception:
            traceback.print_exc()
        sys.stdout.flush()
"""


def join(name, code, expect, imports=MODEL):
    """One of them: what it raises is printed."""
    if JOINED not in PROGRAMS:
        add_torch(JOINED, JOIN, expect="==", modes=ALL, every=True)
    program = PROGRAMS[JOINED]
    file = "parts/%02d %s.py" % (len(program.joined), name)
    program.files[file] = textwrap.dedent(imports) + textwrap.dedent(code)
    program.joined += (expect,)
