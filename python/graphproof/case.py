"""A case as a subject sees it: the values of its axes, the seed, and what follows from them."""

from graphproof.message import Error

# Engines by axis `impl`, as in workloads/engine_traits/engine_traits.h. The judge counts graphs,
# launches and warm-ups by that table.
WHOLE_STEP = ("manual", "full_iteration")
MODULES = ("callables", "local", "transformer_engine")


class Case:
    """The values of all axes, read as attributes: `case.layers`, `case.precision`.

    An axis that the batch file does not have raises Error and is never guessed;
    `axis(name, default)` is for axes that only some subjects have.
    """

    def __init__(self, axes: dict, seed: int, rank: int = 0, world_size: int = 1,
                 device: str = "cuda"):
        self.axes = dict(axes)
        self.seed, self.rank, self.world_size = seed, rank, world_size
        self.device = device  # what torch.device() takes: "cuda", or "cpu" with the stand-in
        # Whether the subject that is being built belongs to an arm with graphs. Libraries that
        # capture by themselves are told so when they are set up.
        self.graph_arm = False

    def __getattr__(self, name: str):
        axes = self.__dict__.get("axes")
        if axes is None or name.startswith("__"):
            raise AttributeError(name)
        if name not in axes:
            raise Error(f"axis {name} of the case", "nothing", "a value",
                        "the subject cannot be set up without it",
                        "run a case of a graphproof that has this axis")
        return axes[name]

    def axis(self, name: str, default):
        """The value of an axis, or `default` if this graphproof has no such axis."""
        return self.axes.get(name, default)

    def of_arm(self, graphs: bool) -> "Case":
        """The case as the subject of one arm gets it."""
        case = Case(self.axes, self.seed, self.rank, self.world_size, self.device)
        case.graph_arm = graphs
        return case

    @property
    def graphs(self) -> bool:
        return self.impl != "none"

    @property
    def captures_whole_step(self) -> bool:
        return self.impl in WHOLE_STEP

    @property
    def first_replay(self) -> int:
        """Eager steps before the first replay: impl local records one, all others warm up."""
        return 1 if self.impl == "local" else self.warmup_steps

    @property
    def capture_step(self) -> int:
        """The step whose inputs the graphs are captured with."""
        if not self.graphs:
            return 0
        return 0 if self.impl == "local" else self.warmup_steps

    @property
    def launches_per_step(self) -> int:
        """Graphs that a replayed step launches (suites/checks/attempt/expected.cpp)."""
        launches = 1
        if self.impl in MODULES:
            parts = max(1, len(self.modules)) if self.impl != "transformer_engine" else 1
            launches = 2 * parts * self.stage_layers * self.microbatches
        return launches + (1 if self.optimizer_graph else 0)

    @property
    def stage_layers(self) -> int:
        """Layers of one pipeline stage, for each of which a forward counter is kept."""
        return self.layers // self.pp
