"""Text generation: time to the first token, time between tokens, tokens per second."""
from typing import Any, Dict, List

from ... import _core
from ..._core import Missing
from ._measure import spread

TOKENS = 16
RUNS = 10


def can(runner: Any) -> bool:
    """Whether the model generates text."""
    able = getattr(getattr(runner, "model", None), "can_generate", None)
    try:
        return callable(able) and bool(able())
    except Exception:
        return False


def _that_fit(runner: Any, named: Dict[str, Any], wanted: int) -> int:
    """Fewer if the prompt leaves fewer positions."""
    config = getattr(runner, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    most, ids = getattr(text, "max_position_embeddings", None), named.get("input_ids")
    if not most or ids is None or getattr(config, "is_encoder_decoder", False):
        return wanted
    room = int(most) - int(ids.shape[-1])
    if room < 1:
        raise ValueError(f"the prompt fills all {most} positions of the model: there is room for no token")
    return min(wanted, room)


def profile(runner: Any, inputs: Any, new_tokens: int, runs: int) -> Dict[str, Any]:
    """Greedy decoding of exactly new_tokens tokens per run, so that runs are comparable. A streamer in C reads the
    clock when a token has reached the host, which implies waiting for a GPU."""
    args, kwargs = inputs
    named = {**kwargs}
    if args:
        named[getattr(runner.model, "main_input_name", "input_ids")] = args[0]
    named.pop("decoder_input_ids", None)
    new_tokens = _that_fit(runner, named, new_tokens)
    times = _core.TokenTimes(2 * new_tokens + 16)
    first: List[float] = []
    between: List[float] = []
    whole: List[float] = []
    batch = next((int(one.shape[0]) for one in named.values() if getattr(one, "ndim", 0)), 1)

    def once() -> List[float]:
        times.start()
        runner.model.generate(**named, streamer=times, max_new_tokens=new_tokens, min_new_tokens=new_tokens,
                              do_sample=False, num_beams=1)
        return list(times.seconds())
    with runner.running():
        once()
        for _ in range(runs):
            came = once()[1:]  # the prompt is put first
            if not came:
                raise RuntimeError("generate() gave no token to its streamer")
            first.append(1e3 * came[0])
            between += [1e3 * (b - a) for a, b in zip(came, came[1:])]
            whole.append(came[-1])
    count = batch * (len(between) // runs + 1)
    return {"new_tokens": count // batch, "batch_size": batch, "runs": runs,
            "time_to_first_token": spread(first, "ms"),
            "time_between_tokens": spread(between, "ms") if between else Missing("one token has none between"),
            "tokens_per_second": count / _core.quantile(whole, 0.5),
            "note": "greedy decoding of as many tokens in every run"}
