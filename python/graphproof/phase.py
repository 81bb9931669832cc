"""The phases of a case, spelled and ordered as in reports/record/verdict/phase.h."""

VALIDATE, INIT, BUILD, EAGER = "validate", "init", "build", "eager"
WARMUP, CAPTURE, REPLAY, COMPARE = "warmup", "capture", "replay", "compare"
TEARDOWN_GRAPH, TEARDOWN_COMM = "teardown_graph", "teardown_comm"
TEARDOWN_PROCESS = "teardown_process"

PHASES = (VALIDATE, INIT, BUILD, EAGER, WARMUP, CAPTURE, REPLAY, COMPARE, TEARDOWN_GRAPH,
          TEARDOWN_COMM, TEARDOWN_PROCESS)
