// The table of verbs: their groups, what they need, and the texts of their help.
#include <array>

#include "launcher/cli/verb.h"

namespace graphproof::cli {
namespace {

constexpr std::array kVerbs = {
    Verb{.name = "run",
         .group = VerbGroup::run,
         .needs = Needs::ranks,
         .meaning = "plan, run and judge the cases of a profile or matrix file",
         .details = "Each case runs on real ranks and ends with one verdict. The run folder "
                    "(runs/RUN_ID) keeps the plan, the evidence of every rank and the reports. "
                    "Exit code 0: every case passed. 1: at least one failed. 3: the machine or "
                    "the cluster let cases down. 4: nothing ran. 5: stopped early.",
         .example = "graphproof run --profile smoke --where \"tp * dp <= 2 and impl != none\"",
         .declare = declare_run,
         .takes_words = true},
    Verb{.name = "resume",
         .group = VerbGroup::run,
         .needs = Needs::ranks,
         .meaning = "continue a run that was interrupted or killed",
         .details = "The plan, the options and the stack are the recorded ones. Cases that have a "
                    "verdict are not run again.",
         .example = "graphproof resume latest",
         .declare = declare_resume},
    Verb{.name = "rerun",
         .group = VerbGroup::run,
         .needs = Needs::ranks,
         .meaning = "run some cases of a recorded run again, as a new run",
         .details = "The recorded run stays as it is.",
         .example = "graphproof rerun latest --failed",
         .declare = declare_rerun},
    Verb{.name = "repro",
         .group = VerbGroup::run,
         .needs = Needs::ranks,
         .meaning = "run one case again, alone, and show its evidence",
         .details =
             "With --script the case is not run: a shell script is written that starts its "
             "ranks without the launcher, under a tool if one is named. It judges nothing. "
             "A copy of the run folder on another machine is enough to write it there; where "
             "the rank programs are elsewhere, set GRAPHPROOF_PROGRAMS to their folder.",
         .example = "graphproof repro impl=manual,microbatches=2",
         .declare = declare_repro},
    Verb{.name = "qualify",
         .group = VerbGroup::run,
         .needs = Needs::ranks,
         .meaning = "run several profiles and say whether the stack may be used",
         .details = "Asks the doctor, then runs each stage as a run of its own below the folder. A "
                    "stage that fails does not stop the others. The sheet (qualification.html, "
                    ".md, .json, .txt) says what was shown, and what was not and why. SHA256SUMS "
                    "covers all evidence. Every run gets the options after `--`. An image must "
                    "contain graphproof. The exit code means the same as that of run. 4 also if "
                    "the stage faults is missing, because nothing else shows that defects are "
                    "noticed here.",
         .example = "graphproof qualify",
         .declare = declare_qualify,
         .takes_words = true},
    Verb{.name = "bringup",
         .group = VerbGroup::run,
         .needs = Needs::ranks,
         .meaning = "bring CUDA graphs up for a configuration, step by step",
         .details =
             "Eager is stable, shapes are fixed, the narrowest scope is captured, its replay "
             "is proven, its numbers are those of eager, and then the scope becomes wider and "
             "work overlaps, one thing at a time. Each step that runs is a run of its own. It "
             "ends at the first step that does not pass and says why. Exit code 0: every step "
             "passed. 1: one failed. 3: the machine let it down. 4: one was not shown.",
         .example = "graphproof bringup impl=local,modules=[attn],tp=2",
         .declare = declare_bringup,
         .takes_words = true},
    Verb{.name = "watch",
         .group = VerbGroup::run,
         .needs = Needs::probe,
         .meaning = "run any command and judge its CUDA graphs",
         .details = "The command runs as it stands. CUDA loads a probe into each of its processes "
                    "that uses a GPU, and at the end, at a crash or at a hang each check has a "
                    "verdict. Processes that srun, mpirun or torchrun start on other nodes are "
                    "watched too if they inherit the environment and the run folder is on a shared "
                    "file system. With --attach-only nothing is started: set the printed lines "
                    "where the program starts, then judge with --finish. Ctrl-C is passed on to "
                    "the command; once more ends it. Exit code 0: a check passed and none failed. "
                    "1: a check failed, or the command hung. 3: the command failed and no check "
                    "says why. 4: there was nothing to judge, or a part of the command was not "
                    "seen. 5: interrupted. The exit code of the command is printed and recorded.",
         .example = "graphproof watch -- python3 train.py",
         .declare = declare_watch,
         .takes_words = true},

    Verb{.name = "status",
         .group = VerbGroup::look_at_runs,
         .needs = Needs::program,
         .meaning = "how far a run is, and whether its launcher still runs",
         .details = "Reads only the run's files, so it works while the run goes on and after it "
                    "was killed.",
         .example = "graphproof status latest --watch",
         .declare = declare_status},
    Verb{.name = "report",
         .group = VerbGroup::look_at_runs,
         .needs = Needs::judge,
         .meaning = "print the closing table of a run again; rebuild its reports",
         .details = "With --format it makes files for other programs instead: CI systems, "
                    "monitoring, a trace viewer.",
         .example = "graphproof report latest",
         .declare = declare_report},
    Verb{.name = "compare",
         .group = VerbGroup::look_at_runs,
         .needs = Needs::program,
         .meaning = "compare two runs: stack, verdicts, numbers, times and memory",
         .details = "The stack comes first, then cases that broke or healed, cases that compute "
                    "other numbers, times and memory with 95 % intervals, and coverage. Exit code "
                    "1 if a case that passed in A fails in B, or if a condition of --fail-on "
                    "holds. 4 if a case has no result any more, or if a condition could not be "
                    "judged.",
         .example = "graphproof compare 20260801-120000-abcd latest --fail-on \"broken,perf>3%\"",
         .declare = declare_compare},
    Verb{.name = "history",
         .group = VerbGroup::look_at_runs,
         .needs = Needs::program,
         .meaning = "keep what runs found, and ask when a case began to fail",
         .details = "add puts runs into the history. show CASE names its first bad run and what "
                    "changed in the stack. flaky lists cases that pass and fail on one stack, with "
                    "a 95 % interval of the rate. trend has a row for each run.",
         .example = "graphproof history add latest",
         .declare = declare_history},
    Verb{.name = "baseline",
         .group = VerbGroup::look_at_runs,
         .needs = Needs::program,
         .meaning = "accept a failure until a day, and see which others a run has",
         .details =
             "accept RUN/CASE needs a reason, an owner and the last day. show lists what is "
             "accepted. diff RUN has exit code 1 if a case fails that is not accepted, fails "
             "in another way, or was accepted until a day that has passed.",
         .example = "graphproof baseline diff latest",
         .declare = declare_baseline},
    Verb{.name = "list",
         .group = VerbGroup::look_at_runs,
         .needs = Needs::program,
         .meaning = "list axes, profiles, rules, checks, faults, runs or cases",
         .details = "",
         .example = "graphproof list axes",
         .declare = declare_list},

    Verb{.name = "explain",
         .group = VerbGroup::understand,
         .needs = Needs::program,
         .meaning = "the rules and checks that apply to a case, and its verdict",
         .details = "For a recorded case that failed it also shows the likely causes and the first "
                    "tensor in which graph and eager differ.",
         .example = "graphproof explain impl=full_iteration,tp=2",
         .declare = declare_explain},
    Verb{.name = "shrink",
         .group = VerbGroup::understand,
         .needs = Needs::ranks,
         .meaning = "find the few values that make a case fail, and its smallest form",
         .details = "Starts from what the other cases of the run did and runs as few more jobs as "
                    "possible. The same command continues a search that was stopped. Exit code 0: "
                    "found and confirmed. 4: not found. 5: stopped early.",
         .example = "graphproof shrink latest/3f2a --budget 30m",
         .declare = declare_shrink},
    Verb{.name = "advise",
         .group = VerbGroup::understand,
         .needs = Needs::program,
         .meaning = "whether a CUDA graph is worth it here, and with which API",
         .details =
             "Of a case that ran: by its times with and without graphs, or if it is eager by "
             "the share of a step in which the GPU works and by the length of its kernels. "
             "Of a watched run: by what the probe saw (watch --profile full). Exit code 4 if "
             "what decides was not measured.",
         .example = "graphproof advise latest/3f2a",
         .declare = declare_advise},
    Verb{.name = "bundle",
         .group = VerbGroup::understand,
         .needs = Needs::program,
         .meaning = "an archive of one case for a bug report, without what is private",
         .details =
             "Packs the verdict, the evidence, the logs and the stack, and for a single "
             "collective or a step of subject torch a program of PyTorch alone that repeats "
             "it. Host and user names, addresses, ids of GPUs, values that look like secrets "
             "and the folders of paths are taken out. The run stays as it is.",
         .example = "graphproof bundle latest/3f2a",
         .declare = declare_bundle},
    Verb{.name = "bisect",
         .group = VerbGroup::understand,
         .needs = Needs::ranks,
         .meaning = "which component of a stack makes a case fail",
         .details =
             "A and B are JSON files that name parts of a stack: nccl and driver (folders of "
             "libraries), torch (a virtual environment) and environment (variables). A part "
             "that is missing is that of the machine. The case runs with A, with B, and with "
             "one component of B at a time in A. If none is enough, the smallest set that "
             "was found is named. What was tried is remembered, and the same command goes "
             "on. Exit code 0: found. 4: not found. 5: interrupted.",
         .example = "graphproof bisect old.json new.json impl=manual,tp=2",
         .declare = declare_bisect},
    Verb{.name = "case",
         .group = VerbGroup::understand,
         .needs = Needs::program,
         .meaning = "what a case name means, or the case nearest to a configuration",
         .details = "Prints the id, the axes, the ranks and the expectation of the case. With "
                    "--like it first turns a training configuration of Megatron-LM or Megatron "
                    "Bridge into the nearest case that this machine can run.",
         .example = "graphproof case impl=manual,tp=2",
         .declare = declare_case,
         .takes_words = true},
    Verb{.name = "check",
         .group = VerbGroup::understand,
         .needs = Needs::program,
         .meaning = "what upstream rejects or changes in a training configuration",
         .details = "Applies the rules of Megatron-LM or Megatron Bridge without starting either: "
                    "what is rejected, what is changed silently, and what is accepted although it "
                    "is hazardous with CUDA graphs. Exit code 1 if the configuration is rejected.",
         .example = "graphproof check -- --cuda-graph-impl local --bf16",
         .declare = declare_check,
         .takes_words = true},
    Verb{.name = "rules",
         .group = VerbGroup::understand,
         .needs = Needs::program,
         .meaning = "print rules in full: ours, or those of Megatron-LM and Bridge",
         .details = "",
         .example = "graphproof rules R035",
         .declare = declare_rules},

    Verb{.name = "plan",
         .group = VerbGroup::plan,
         .needs = Needs::program,
         .meaning = "which cases a run would have, and what removed the others",
         .details = "Plans for the device and the stack of this machine if the rank programs are "
                    "built (./graphproof doctor builds them), and otherwise for the simulated "
                    "device with an unknown stack.",
         .example = "graphproof plan --profile smoke",
         .declare = declare_plan},
    Verb{.name = "cover",
         .group = VerbGroup::plan,
         .needs = Needs::program,
         .meaning = "few rows that hold every combination of T values of a model",
         .details = "This is the covering array generator that profiles use, on its own.",
         .example = "graphproof cover matrix/profiles/nightly.json --strength 2",
         .declare = declare_cover},
    Verb{.name = "verify",
         .group = VerbGroup::plan,
         .needs = Needs::program,
         .meaning = "whether given rows hold every combination that a model asks for",
         .details = "Shares no code with the generator. Exit code 1 if a combination is missing.",
         .example = "graphproof verify model.txt rows.csv --strength 2",
         .declare = declare_verify},
    Verb{.name = "order",
         .group = VerbGroup::plan,
         .needs = Needs::program,
         .meaning = "the order in which a pipeline stage captures its graphs",
         .details = "Prints the forwards (positive) and backwards (negative) of one stage in "
                    "order, the number of its warm-up forwards, and the static input buffer that "
                    "each forward uses.",
         .example = "graphproof order --pp 4 --pp-rank 1 --microbatches 8",
         .declare = declare_order},

    Verb{.name = "new-subject",
         .group = VerbGroup::plan,
         .needs = Needs::program,
         .meaning = "write an example of a script that is tested as a subject",
         .details = "The file has a small model with its step, optimizer and batches, and comments "
                    "that say what to replace. The case that runs it is printed. A file that "
                    "exists is never replaced.",
         .example = "graphproof new-subject my_model.py",
         .declare = declare_new_subject},

    Verb{.name = "merge",
         .group = VerbGroup::cluster,
         .needs = Needs::program,
         .meaning = "join the runs of a plan's shards into one run",
         .details = "",
         .example = "graphproof merge runs/shard-1 runs/shard-2",
         .declare = declare_merge},
    Verb{.name = "ci",
         .group = VerbGroup::cluster,
         .needs = Needs::program,
         .meaning = "print a pipeline for GitLab, GitHub or Slurm that runs shards",
         .details = "The last job of the pipeline merges the runs of the shards.",
         .example = "graphproof ci gitlab --shards 8",
         .declare = declare_ci},
    Verb{.name = "agent",
         .group = VerbGroup::internal,
         .needs = Needs::ranks,
         .meaning = "internal: serve a launcher on a node of a cluster",
         .details = "Started by srun, sbatch or mpirun, never by hand.",
         .example = "",
         .declare = declare_agent},

    Verb{.name = "doctor",
         .group = VerbGroup::maintain,
         .needs = Needs::ranks,
         .meaning = "whether this machine can run cases",
         .details = "",
         .example = "graphproof doctor",
         .declare = declare_doctor},
    Verb{.name = "selftest",
         .group = VerbGroup::maintain,
         .needs = Needs::ranks,
         .meaning = "whether ranks that report wrong results are caught here",
         .details = "Plants a few defects into the ranks of this machine. Each must be caught, and "
                    "the same cases without them must pass.",
         .example = "graphproof selftest",
         .declare = declare_selftest},
    Verb{.name = "test",
         .group = VerbGroup::maintain,
         .needs = Needs::tests,
         .meaning = "build everything and run the tests of graphproof itself",
         .details = "Arguments are passed to ctest.",
         .example = "graphproof test -R launcher_",
         .declare = declare_test},
    Verb{.name = "help",
         .group = VerbGroup::maintain,
         .needs = Needs::program,
         .meaning = "explain a verb and its options",
         .details = "",
         .example = "graphproof help run",
         .declare = declare_help},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  return names;
}

}  // namespace graphproof::cli
