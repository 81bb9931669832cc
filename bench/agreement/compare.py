#!/usr/bin/env python3
"""Holds the verdicts of `check` against those of upstream's own code, on random configurations.
    python bench/agreement/compare.py --count 10000 --seed 1 [--dialect NAME] [--wheel FOLDER]
Prints one row for each kind of difference; the exit status is 1 if there is one. A verdict has the
result, the stage, and the rule: each line of upstream's code that raises is answered by one rule.
Needs graphproof-bench-upstream on the PATH and a Python with torch, as ./graphproof sets it up; the
wheel, numpy and packaging come from PyPI."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # The folder belongs to the tree.
from bridge import Bridge
from draw import Draw, DrawBridge
from real import Upstream

VERSION = "0.19.2"
# What asks upstream, what draws, the wheels of upstream, and the packages of others that these
# import; the last ones would bring a PyTorch of their own and come without what they need.
DIALECTS = {
    "megatron-lm": (Upstream, Draw, [f"megatron-core=={VERSION}"], ["numpy", "packaging"], []),
    "megatron-bridge": (
        Bridge, DrawBridge, [f"megatron-core=={VERSION}", "megatron-bridge==0.6.2"],
        ["transformers>=5.8,<=5.12.1", "datasets>=2.20", "omegaconf>=2.3", "hydra-core==1.3.*",
         "einops", "rich", "psutil", "six"], ["peft>=0.18.1", "accelerate"])}
MATRIX = os.path.join(os.path.dirname(__file__), "../../matrix")


def unpacked(folder, wheels, packages, alone):
    """Downloads and unpacks the wheels, which are none of ours and are never committed, and
    installs what they import beside torch."""
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "install", "-q", "--target", folder, *packages], check=True)
    if alone:
        subprocess.run([*pip, "install", "-q", "--no-deps", "--target", folder, *alone], check=True)
    subprocess.run([*pip, "download", "-q", "--no-deps", "-d", folder, "--python-version", "3.12",
                    "--only-binary=:all:", *wheels], check=True)
    for name in os.listdir(folder):
        if name.endswith(".whl"):
            subprocess.run([sys.executable, "-m", "zipfile", "-e", os.path.join(folder, name),
                            folder], check=True)
    return folder


def verdicts_of_check(questions, dialect):
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    result = subprocess.run(["graphproof-bench-upstream", dialect, VERSION], input=lines, text=True,
                            stdout=subprocess.PIPE, check=True)
    return [verdict_of(json.loads(line)) for line in result.stdout.splitlines()]


def verdict_of(line):
    """Stage and rule of the first error that the code which runs here can raise."""
    for stage, rule in line["errors"]:
        if stage in ("cli", "config") or rule in CONSTRUCT:
            return {**line, "accepted": False, "stage": stage, "rule": rule}
    return {**line, "accepted": True}


def difference(real, ours, rule_of):
    """The kind of difference, or None."""
    if real["accepted"] != ours["accepted"]:
        return ("accepted here, refused there: " + real["site"] if ours["accepted"] else
                "refused here, accepted there: " + ours["rule"])
    if real["accepted"]:
        for name, value in ours["effective"].items():
            if name in EFFECTIVE and name in real["effective"] and real["effective"][name] != value:
                return f"another effective {name}"
        return None
    if real["stage"] != ours["stage"]:
        return f"stage {ours['stage']} ({ours['rule']}) here, {real['stage']} there: {real['site']}"
    rules = rule_of[real["site"]]
    if ours["rule"] != rules.most_common(1)[0][0]:
        return f"{ours['rule']} here, elsewhere {rules.most_common(1)[0][0]}: {real['site']}"
    return None


# Rules of stage construct that DistributedDataParallelConfig checks; others need process groups.
CONSTRUCT = {"R123", "RN91"}
# Options that rules rewrite.
EFFECTIVE = {"cuda_graph_impl", "cuda_graph_modules", "inference_cuda_graph_scope",
             "cpu_offloading", "sequence_parallel", "moe_expert_capacity_factor",
             "recompute_granularity", "gtp_weight_remat_size", "expert_gtp_weight_remat_size",
             "virtual_pipeline_model_parallel_size", "expert_tensor_parallel_size"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dialect", choices=DIALECTS, default="megatron-lm")
    parser.add_argument("--wheel", help="a folder with unpacked wheels; else they are downloaded")
    parser.add_argument("--show", type=int, default=1, help="examples of each kind")
    parser.add_argument("--sites", action="store_true", help="print which rule answers which line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        ask, drawing, *wheels = DIALECTS[options.dialect]
        upstream = ask(options.wheel or unpacked(scratch, *wheels))
        draw = drawing(MATRIX, VERSION, options.seed, upstream.fields())
        questions = [draw.configuration() for _ in range(options.count)]
        real = [upstream.ask(question) for question in questions]
    ours = verdicts_of_check(questions, options.dialect)
    rule_of = collections.defaultdict(collections.Counter)
    for there, here in zip(real, ours):
        if not there["accepted"] and not here["accepted"] and there["stage"] == here["stage"]:
            rule_of[there["site"]][here["rule"]] += 1
    kinds = collections.defaultdict(list)
    for index, (there, here) in enumerate(zip(real, ours)):
        kind = difference(there, here, rule_of)
        if kind:
            kinds[kind].append(index)
    for kind, indices in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(len(indices), kind)
        for index in indices[:options.show]:
            print("   ", real[index].get("message", "accepted"), "|", json.dumps(questions[index]),
                  "| undecided:", ours[index]["undecided"])
    if options.sites:
        for site, rules in sorted(rule_of.items()):
            print(site, dict(rules))
    refused = sum(not verdict["accepted"] for verdict in real)
    different = sum(len(indices) for indices in kinds.values())
    print(f"{options.count} configurations (seed {options.seed}): {refused} refused by "
          f"{' and '.join(wheels[0])} at {len(rule_of)} places, {different} different verdicts")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
