"""Frameworks and libraries."""
from ._table import ALL, add, add_torch

add_torch("Lightning", """
    import logging, torch, lightning
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def training_step(self, batch, _):
            return self.layer(batch).mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    lightning.seed_everything(0, verbose=False)
    model = Model()
    trainer = lightning.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                accelerator="cpu")
    trainer.fit(model, torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2))
    print(trainer.global_step)
""", needs=("lightning",), expect="8", modes=ALL)
add_torch("Transformers' Trainer", """
    import torch, transformers
    transformers.logging.set_verbosity_error()
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30))
    data = [{"input_ids": torch.arange(4), "labels": torch.tensor(1)} for _ in range(6)]
    arguments = transformers.TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=2, report_to=[],
                                               disable_tqdm=True, save_strategy="no", use_cpu=True)
    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    trainer.remove_callback(transformers.PrinterCallback)  # it prints times
    trainer.train()
    print(trainer.state.global_step)
""", needs=("transformers", "accelerate"), expect="3", compares_files=False)
add_torch("accelerate", """
    import torch, accelerate
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(2, 1)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
                                                   torch.utils.data.DataLoader(torch.ones(6, 2), batch_size=2))
    for batch in loader:
        optimizer.zero_grad()
        accelerator.backward(model(batch).sum())
        optimizer.step()
    print("done")
""", needs=("accelerate",), expect="done")
add_torch("torch beside lightning, transformers and scikit-learn", """
    import torch, lightning, transformers, sklearn.linear_model
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    print(sklearn.linear_model.LinearRegression().fit([[0], [1]], [0, 1]).predict([[2]]).round(3))
""", needs=("lightning", "transformers", "sklearn"), expect="[2.]", modes=ALL)
add("scikit-learn with joblib", """
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score
    data = make_classification(100, random_state=0)
    print(cross_val_score(RandomForestClassifier(5, random_state=0), *data, n_jobs=2, cv=3))
    from sklearn.linear_model import LogisticRegression
    LogisticRegression(max_iter=1).fit(*data)
""", needs=("sklearn",), expect="ConvergenceWarning")
add("pandas", """
    import pandas
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
    print(frame.describe(include="all"), frame.isna())
    frame.to_csv("frame.csv")
    frame["c"]
""", needs=("pandas",), expect="KeyError: 'c'", status=1)
add("matplotlib", """
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    for _ in range(21):
        plt.figure()
    plt.plot([1, 2])
    print(plt.get_fignums()[-1])
""", needs=("matplotlib",), expect="More than 20 figures")
