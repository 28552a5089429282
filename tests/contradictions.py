"""Tare itself looks for figures that cannot be true together, in every table it makes (src/analyze/consistent.c). Every
test that sees an output looks for what it says then."""

WORDS = ("figure contradicts another", "figures contradict others",  # of notes that src/analyze/analyze.c …
         "sampled totals went back")                                 # … and src/analyze/tables/run.c write


def check_contradictions(*texts):
    for text in texts:
        flat = " ".join(text.split())
        for words in WORDS:
            at = flat.find(words)
            assert at < 0, flat[max(at - 20, 0):at + 400]
