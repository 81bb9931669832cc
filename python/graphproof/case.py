"""A case as a subject sees it: the values of its axes, the seed, and what follows from them."""

from graphproof.message import Error

# Engines by axis `impl`, as in workloads/engine_traits/engine_traits.h, by which the judge counts.
WHOLE_STEP = ("manual", "full_iteration")


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
    def evaluations(self) -> int:
        """Batches that are evaluated: enough to warm up, capture and replay a graph of it."""
        return self.warmup_steps + 2

    @property
    def evaluation_step(self) -> int:
        """The step after the evaluations."""
        return self.first_replay + 1

    @property
    def resume_step(self) -> int:
        """The first step after the checkpoint: the resumed job has time for its warm-up and one
        replay, or two in a new process, which loads it once only: the first replay has the inputs
        of its capture."""
        return self.steps - self.first_replay - (2 if self.resumes_in_new_process else 1)

    @property
    def resumes_in_new_process(self) -> bool:
        return self.schedule == "resume" and \
            self.axis("resume_in", "same_process") == "new_process"

    @property
    def stage_layers(self) -> int:
        """Layers of this rank's pipeline stage, for each of which a forward counter is kept: those
        of multi-token prediction, which are on the last one, too."""
        last = self.rank // (self.world_size // self.pp) == self.pp - 1
        return self.layers // self.pp + (self.axis("mtp_num_layers", 0) if last else 0)
