"""Compares optimizations of a model with the unchanged model: which trains faster, with the same results."""
from typing import Any, Dict, List, Optional

from ..config import ProfilingConfig
from ..torch import _state
from . import _benchmark
from .optimize import OPTIMIZATIONS, Unfit, verify


class Contest:
    """Optimizations one after the other, each against the best so far."""

    def __init__(self, config: ProfilingConfig, model: Any, batches: List[Any], loss_fn: Any, rounds: int,
                 tolerance: Optional[float]) -> None:
        device = _state.device_of(model)
        self.config = config
        self.batches = [_state.to_device(batch, device) for batch in batches]
        self.loss_fn = loss_fn
        self.rounds = rounds
        self.tolerance = tolerance
        self.device = device
        self.reference = _state.copy_of(model)
        self.candidates: List[Dict[str, Any]] = []

    def _trainee(self, model: Any) -> _benchmark.Trainee:
        return _benchmark.Trainee(model, self.batches, self.loss_fn)

    def _settle(self) -> None:
        _state.synchronize(self.device)

    def _against(self, first: Any, second: Any) -> _benchmark.Trial:
        """Trains both; afterwards their state is restored, so that the next one starts with the same weights."""
        with _state.kept_state(first), _state.kept_state(second):
            one, other = self._trainee(first), self._trainee(second)
            for trainee in (one, other):
                trainee.step(self.batches[0])  # compiles, allocates
            return _benchmark.interleaved(one.epoch, other.epoch, self.rounds, self._settle)

    def run(self) -> Dict[str, Any]:
        best, kept, trial = self.reference, [], None
        self._peak_mb(best)  # a model that cannot be trained at all fails here
        for one in OPTIMIZATIONS if self.config.enable_optimizations else ():
            if getattr(self.config, one.switch):
                changed, tried = self._try(one, best)
                if changed is not None:
                    best, trial = changed, tried if not kept else None
                    kept.append(self.candidates[-1]["name"])
        original = self.reference
        if not kept:
            trial = self._alone(original)
        elif trial is None:  # several: the last was tried against the others, not against the original
            trial = self._against(original, best)
        return self._report(trial, kept, best)

    def _alone(self, model: Any) -> _benchmark.Trial:
        with _state.kept_state(model):
            trainee = self._trainee(model)
            trainee.step(self.batches[0])
            trial = _benchmark.interleaved(trainee.epoch, lambda: None, self.rounds, self._settle)
        return _benchmark.Trial(trial.first, trial.first)

    def _peak_mb(self, model: Any) -> float:
        with _state.kept_state(model):
            return self._trainee(model).peak_mb()

    def _try(self, one: Any, best: Any) -> Any:
        reported: Dict[str, Any] = {"name": one.name(best)}
        self.candidates.append(reported)
        try:
            one.check(best)
            changed = one.apply(_state.copy_of(best))
        except Unfit as error:
            reported.update(status="skipped", reason=str(error))
            return None, None
        # Compared with the original model, it includes the deviations of the optimizations before it.
        kept = [other["tolerance"] for other in self.candidates if other.get("status") == "kept"]
        limit = max([one.tolerance, *kept])
        reported.update(verify(self.reference, changed, self.batches[0],
                           limit if self.tolerance is None else self.tolerance))
        if not reported["accepted"]:
            reported["status"] = "rejected"
            return None, None
        try:
            with _state.kept_state(changed):
                reported["evidence"] = one.evidence(best, changed, lambda: self._trainee(changed).step(self.batches[0]))
            trial = self._against(best, changed)
        except Unfit as error:
            reported.update(status="skipped", accepted=False, reason=str(error))
            return None, None
        except Exception as error:  # the unchanged model was trained successfully: the change causes the error
            reported.update(status="rejected", reason=f"it cannot be trained: {_state.first_line(error)}")
            return None, None
        reported.update(trial.reported())
        if not trial.helps:
            reported.update(status="rejected", reason=f"it does not help: {trial.speedup:.2f}x when measured "
                                                  f"({reported['decision']['why']})")
            return None, None
        reported["status"] = "kept"
        return changed, trial

    def _report(self, trial: _benchmark.Trial, kept: List[str], best: Any) -> Dict[str, Any]:
        counts = [_state.samples_in(batch) for batch in self.batches]
        samples = None if None in counts else sum(counts)
        steps = len(self.batches)
        memory = self._peak_mb(self.reference)
        less = self._peak_mb(best) if kept else memory
        original = _benchmark.side(trial.first, steps, samples, memory)
        optimized = {**_benchmark.side(trial.second, steps, samples, less), "optimizations_applied": kept}
        notes = [] if self.loss_fn is not None else [_state.SURROGATE + ", unless the model has its own"]
        if not kept:
            notes.append("no optimization was kept: the optimized model is the original")
        return {"original": original, "optimized": optimized,
                "improvements": _benchmark.improvements(original, optimized), "candidates": self.candidates,
                "steps": steps, "rounds": self.rounds, "notes": notes,
                "status": "measured" if kept else "measured: nothing helped", "saved": []}
