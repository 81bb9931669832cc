"""The arms of a case: ways to run the same steps, in the order of suites/arms.

eager_a, solo_eager; with graphs also lockstep_eager with lockstep_graph, free_graph and solo_graph.
"""
