"""The classes of the seed documents: thin façades over the recorder (`_core`) and the engine (`_engine`). Their public
names are those of `tare` itself: `tare.PerformanceProfiler`, `tare.ModelProfiler`, …"""
