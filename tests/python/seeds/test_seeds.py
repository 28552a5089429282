"""Every snippet of the seed documents, and the table that says where each stands."""
import os

import pytest

import seed_blocks
import seed_list
import seed_table
from seed_run import Snippet, need

ENTRIES = seed_list.load()
FOLDER = seed_blocks.folder()
BLOCKS = {block.key: block for block in seed_blocks.all_blocks(FOLDER)} if FOLDER else {}
FAILED = set()

with_documents = pytest.mark.skipif(
    FOLDER is None, reason="the seed documents are not here (TARE_SEEDS names their folder): no snippet was run")


def _name(key):
    return "-".join(map(str, key))


@with_documents
def test_every_block_is_listed_in_order():
    assert list(ENTRIES) == list(BLOCKS)


@with_documents
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # of torch, of what the documents call
@pytest.mark.parametrize("key", [key for key, entry in ENTRIES.items() if entry.check], ids=_name)
def test_snippet(key, tmp_path):
    entry = ENTRIES[key]
    need(*entry.needs)
    try:
        entry.check(Snippet(BLOCKS[key], tmp_path, BLOCKS))
    except pytest.skip.Exception:
        raise
    except BaseException:
        FAILED.add(key)
        raise


@pytest.mark.parametrize("capability", [name for name, names in seed_list.CAPABILITIES.items() if names])
def test_what_is_waited_for_is_not_there_yet(capability):
    """When this fails, write the checks of the snippets that waited."""
    import tare
    assert any(entry.waits == capability for entry in ENTRIES.values()), f"nothing waits for {capability} any more"
    assert [name for name in seed_list.CAPABILITIES[capability] if hasattr(tare, name)] == []


def test_the_table_is_the_truth():
    text = seed_table.render(ENTRIES.values(), FAILED)
    if os.environ.get("TARE_GOLDEN") == "write":
        seed_table.PATH.write_text(text, encoding="utf-8")
    assert seed_table.PATH.read_text(encoding="utf-8") == text, "python tests/python/seeds/make_table.py writes it"


@pytest.mark.parametrize("test", [test for _, _, test in seed_table.PLANNED if test])
def test_what_is_planned_has_its_test(test):
    file, _, name = test.partition("::")
    assert f"def {name}(" in (seed_blocks.ROOT / "tests" / "python" / file).read_text(encoding="utf-8")


def test_blocks_are_found():
    text = "# One\n```python\n# no heading\nx = 1\n```\n## **Two**\n```\na\n```\n```bash\nb\n```\n"
    found = [(block.heading, block.number, block.language, block.text) for block in seed_blocks.blocks_of("9", text)]
    assert found == [("One", 1, "python", "# no heading\nx = 1\n"), ("Two", 1, "", "a\n"), ("Two", 2, "bash", "b\n")]
    with pytest.raises(ValueError, match="not closed"):
        seed_blocks.blocks_of("9", "```python\nx = 1\n")


def test_a_failure_is_told_in_the_table():
    entries = [seed_list.Entry(("9", "A | B", 1), print), seed_list.Entry(("9", "C", 1), None, waits="TensorFlow")]
    text = seed_table.render(entries, {("9", "A | B", 1)})
    assert "| 9 | A \\| B | 1 | FAILS |" in text and "| 9 | C | 1 | waits for TensorFlow |" in text
    assert "| FAILS | 1 |" in text and "| all | 2 |" in text
