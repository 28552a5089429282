"""docs/TRUTH.md has the rows of all files of this folder, and every number in the outputs has a row."""
import importlib
import pathlib

import truth as rows

HERE = pathlib.Path(__file__).resolve().parent


def every_figure():
    figures = {}
    for file in sorted(HERE.glob("test_*.py")):
        for figure in getattr(importlib.import_module(file.stem), "FIGURES", ()):
            assert figure.path not in figures, f"{figure.path} is in {file.name} and {figures[figure.path][0]}"
            figures[figure.path] = (file.name, figure)
    return {path: figure for path, (_, figure) in figures.items()}


def test_the_page_is_up_to_date():
    documented = rows.documented()
    for path, figure in every_figure().items():
        row = figure.row()
        row.pop("path")
        assert documented.get(path) == row, f"docs/TRUTH.md is not up to date at {path}: run tools/truth"
    assert set(documented) == set(every_figure()), "docs/TRUTH.md has rows that no test has: run tools/truth"
