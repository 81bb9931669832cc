#include "reports/analysis/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

std::optional<double> figure(const std::map<std::string, double>& figures, const char* name) {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string on_busy_share(double share) {
  if (share > kBusyShare)
    return fmt::format("above {}: little waits for the host", percent(kBusyShare));
  if (share < kIdleShare) return fmt::format("below {}: the GPU waits a lot", percent(kIdleShare));
  return fmt::format("between {} and {}: it waits a little", percent(kIdleShare),
                     percent(kBusyShare));
}

std::string on_kernel(double us) {
  return us < kShortKernel_us
             ? fmt::format("below {:.0f} us: short against a launch by the host", kShortKernel_us)
             : fmt::format("{:.0f} us or more: a launch by the host hides behind it",
                           kShortKernel_us);
}

/// Advice for a program that was measured without graphs.
void judge_eager(Advice& advice, std::optional<double> busy, std::optional<double> kernel_us,
                 std::optional<double> launches) {
  if (!busy) {
    advice.answer = "unknown";
    advice.because = "it was not measured for how much of a step the GPU works";
    return;
  }
  if (*busy > kBusyShare) {
    advice.answer = "unlikely";
    advice.because = "the GPU works nearly all the time, and a graph removes only waiting";
  } else if (*busy < kIdleShare && kernel_us && *kernel_us >= kShortKernel_us) {
    advice.answer = "perhaps";
    advice.because =
        "the GPU waits, but its kernels are long, so it may wait for something else than launches, "
        "such as data or a synchronisation";
  } else if (*busy < kIdleShare && kernel_us && launches && *launches >= kManyLaunches) {
    advice.answer = "likely";
    advice.because = "the GPU waits for the launches of many short kernels";
  } else if (*busy < kIdleShare) {
    advice.answer = "perhaps";
    advice.because = launches && *launches < kManyLaunches
                         ? "the GPU waits, but a step has few launches"
                         : "the GPU waits; what for was not measured";
  } else {
    advice.answer = "perhaps";
    advice.because = "the GPU waits a little, so a graph can gain a little";
  }
}

const char* kPartial =
    "capture the parts whose shapes are fixed (attention, dense layers): dropless routing changes "
    "shapes with the data";
// docs/findings/local-graphs-free-saved-inputs.md
const char* kSpecification =
    "; take Transformer Engine's layer specification, because gradients of the local one are wrong "
    "with Megatron-Core 0.19.2";

void choose_api(Advice& advice, const nlohmann::json& axes) {
  const auto word = [&](const char* axis) { return axes.value(axis, std::string()); };
  // Runs of versions without the axis had graphproof's own code.
  const std::string subject = axes.value("subject", std::string("reference"));
  const bool fp8 = word("precision").starts_with("fp8");
  const bool pipeline = axes.value("pp", 1) > 1;
  const bool dropless = word("dispatch") == "dropless";
  if (subject == "script") {
    advice.api = "what the script uses";
    advice.api_why = "graphproof does not know the framework of a script";
  } else if (subject == "reference" || subject == "megatron_core") {
    if (dropless) {
      advice.api = "Megatron-Core, cuda_graph_impl=local per module";
      advice.api_why = std::string(kPartial) + kSpecification;
    } else if (fp8 || pipeline) {
      advice.api = "Megatron-Core, cuda_graph_impl=local per layer";
      advice.api_why =
          "it knows the order of pipeline stages and FP8 scales by itself; go on to full_iteration "
          "if that passes and is too slow" +
          std::string(kSpecification);
    } else {
      advice.api = "Megatron-Core, full_iteration";
      advice.api_why = "shapes are fixed, so one graph can have a whole iteration and gains most";
    }
  } else if (subject.starts_with("transformer") || fp8 || pipeline) {
    advice.api = "transformer_engine.pytorch.make_graphed_callables";
    advice.api_why = "it knows FP8 scales and the order of pipeline stages";
  } else if (subject == "torch_compile") {
    advice.api = "torch.compile(mode=\"reduce-overhead\")";
    advice.api_why =
        "it is in use already; if it makes many small graphs, go on to "
        "torch.cuda.make_graphed_callables";
  } else {
    advice.api = "torch.cuda.make_graphed_callables";
    advice.api_why =
        "it keeps autograd and the training loop; torch.cuda.graph around the whole step gains "
        "more and leaves more to you";
  }
}

std::string next_of(const std::string& answer) {
  if (answer == "worth it" || answer == "likely")
    return "go in steps, and stop where one fails: graphproof bringup --like FILE";
  if (answer == "perhaps")
    return "measure one graph: graphproof repro with impl=full_iteration for the same axes";
  if (answer == "unknown") return "";
  return "leave it eager, and look for the time elsewhere: nsys profile";
}

}  // namespace

Advice advise(const RunResult& run, const CaseResult& one) {
  Advice advice;
  const record::Record& record = one.record;
  choose_api(advice, one.plan.axes);
  const auto unknown = [&](std::string because, std::string next) {
    advice.answer = "unknown";
    advice.because = std::move(because);
    advice.next = std::move(next);
    return advice;
  };
  if (run.run.device == "sim")
    return unknown("the case ran on the simulated device, whose times say nothing about a GPU",
                   "run it on a machine with GPUs");
  if (record.verdict != "pass"_verdict)
    return unknown(
        fmt::format("the case ended {}, and the speed of a graph that computes something "
                    "else is no benefit",
                    record.verdict.text()),
        "find out why first: graphproof explain " + run.run_name + "/" + one.plan.id);
  if (run.run.options.sharing.shared(record.ranks, run.run.slots))
    return unknown("its ranks shared GPUs, and waited for others there",
                   "run it with a GPU for each rank");

  const auto eager_ms = figure(record.figures, "eager_step_ms"),
             graph_ms = figure(record.figures, "graph_step_ms"),
             busy = figure(record.figures, "eager_busy_share"),
             graphs = figure(record.figures, "graphs"),
             nodes = figure(record.figures, "graph_nodes");
  if (!eager_ms) return unknown("steps were not timed", "run it with a graphproof of today");
  advice.facts.push_back({"eager step", fmt::format("{:.3g} ms", *eager_ms), ""});
  std::optional<double> kernel_us, launches;
  if (busy) {
    advice.facts.push_back({"GPU busy, eager", percent(*busy), on_busy_share(*busy)});
    if (graphs && nodes && *graphs == 1 && *nodes > 0) {
      // Its nodes are what eager launches one by one, and there may be more outside.
      launches = *nodes;
      kernel_us = 1000 * *eager_ms * *busy / *nodes;
      advice.facts.push_back({"launches of a step, at least", fmt::format("{:.0f}", *nodes),
                              *nodes < kManyLaunches ? "few" : "many"});
      advice.facts.push_back({"a kernel, on average, at most", fmt::format("{:.3g} us", *kernel_us),
                              on_kernel(*kernel_us)});
      advice.facts.push_back({"gap between launches, at most",
                              fmt::format("{:.3g} us", 1000 * *eager_ms * (1 - *busy) / *nodes),
                              ""});
    } else {
      advice.missing.emplace_back(
          "how long a kernel takes: only a case with one graph says how many launches a step has");
    }
  } else {
    advice.missing.emplace_back("for how much of a step the GPU works");
  }
  if (!graph_ms) {
    judge_eager(advice, busy, kernel_us, launches);
    advice.missing.emplace_back("how fast a graph is: the case is eager");
    advice.next = next_of(advice.answer);
    return advice;
  }
  advice.facts.push_back({"step from graphs", fmt::format("{:.3g} ms", *graph_ms),
                          fmt::format("{:.2f} times as fast as eager", *eager_ms / *graph_ms)});
  const double capture_s = figure(record.figures, "capture_seconds").value_or(0);
  if (capture_s > 0)
    advice.facts.push_back(
        {"all captures of a rank", fmt::format("{:.3g} ms", 1000 * capture_s), ""});
  if (const auto bytes = figure(record.figures, "extra_memory_bytes"))
    advice.facts.push_back(
        {"more memory than eager", fmt::format("{:.3g} MiB", *bytes / (1 << 20)), ""});
  if (*graph_ms < *eager_ms * (1 - kNoise)) {
    advice.answer = "worth it";
    advice.because = fmt::format("a step from graphs takes {:.0f} % of the time of an eager step",
                                 100 * *graph_ms / *eager_ms);
    const double steps = 1000 * capture_s / (*eager_ms - *graph_ms);
    if (capture_s > 0)
      advice.facts.push_back({"break-even", fmt::format("{:.0f} steps", std::ceil(steps)),
                              "then the captures have paid for themselves"});
  } else {
    advice.answer = "not worth it";
    advice.because =
        *graph_ms > *eager_ms * (1 + kNoise)
            ? "steps from graphs are slower than eager steps"
            : fmt::format("the difference is below {}, which one run cannot tell from chance",
                          percent(kNoise));
  }
  advice.next = next_of(advice.answer);
  return advice;
}

Advice advise(const record::WatchedRun& run, const record::WatchedChecks& checks) {
  Advice advice;
  const auto busy = figure(checks.figures, "device_busy_share"),
             kernel_us = figure(checks.figures, "kernel_us"),
             launches = figure(checks.figures, "kernels_per_step"),
             graph_share = figure(checks.figures, "graph_share");
  std::string command;
  for (const std::string& word : run.command) command += " " + word;
  std::ranges::transform(command, command.begin(), [](unsigned char c) { return std::tolower(c); });
  if (command.find("megatron") != command.npos || command.find("pretrain_") != command.npos) {
    advice.api = "Megatron-Core, cuda_graph_impl=local per layer";
    advice.api_why =
        "the command names Megatron; full_iteration gains more where shapes are fixed" +
        std::string(kSpecification);
  } else {
    advice.api = "torch.cuda.make_graphed_callables";
    advice.api_why =
        "it keeps autograd and the training loop; with FP8 or pipeline stages take "
        "transformer_engine.pytorch.make_graphed_callables";
  }
  if (graph_share)
    advice.facts.push_back({"kernels in graphs", percent(*graph_share),
                            *graph_share >= kMostlyCaptured ? "little is left to capture" : ""});
  else
    advice.missing.emplace_back("which share of the kernels is in graphs");
  if (busy)
    advice.facts.push_back({"GPU busy, at most", percent(*busy), on_busy_share(*busy)});
  else
    advice.missing.emplace_back("for how much of the time the GPU works");
  if (launches)
    advice.facts.push_back({"kernels outside graphs, a step", fmt::format("{:.0f}", *launches),
                            *launches < kManyLaunches ? "few" : "many"});
  else
    advice.missing.emplace_back("how many kernels a step launches outside graphs");
  if (kernel_us)
    advice.facts.push_back(
        {"such a kernel, on average", fmt::format("{:.3g} us", *kernel_us), on_kernel(*kernel_us)});
  if (graph_share && *graph_share >= kMostlyCaptured) {
    advice.answer = "unlikely";
    advice.because = "graphs hold nearly all kernels already, so more of them can gain little";
  } else {
    judge_eager(advice, busy, kernel_us, launches);
  }
  advice.next = next_of(advice.answer);
  if (advice.answer == "unknown")
    advice.next =
        "watch it again with what measures the device, for some steps: "
        "graphproof watch --profile full -- COMMAND";
  return advice;
}

std::string advice_text(const Advice& advice) {
  std::string text = fmt::format("{}: {}\n", advice.answer, advice.because);
  std::size_t width = 0, value_width = 0;
  for (const AdviceFact& fact : advice.facts) {
    width = std::max(width, fact.what.size());
    value_width = std::max(value_width, fact.value.size());
  }
  for (const AdviceFact& fact : advice.facts) {
    std::string line =
        fmt::format("  {:<{}}  {:<{}}  {}", fact.what, width, fact.value, value_width, fact.says);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (const std::string& one : advice.missing) text += "  not measured: " + one + "\n";
  text += fmt::format("capture with {}: {}\n", advice.api, advice.api_why);
  if (!advice.next.empty()) text += "next: " + advice.next + "\n";
  return text;
}

nlohmann::json to_json(const Advice& advice) {
  nlohmann::json facts = nlohmann::json::array();
  for (const AdviceFact& fact : advice.facts)
    facts.push_back({{"what", fact.what}, {"value", fact.value}, {"says", fact.says}});
  return {{"answer", advice.answer},   {"because", advice.because}, {"facts", facts},
          {"missing", advice.missing}, {"api", advice.api},         {"api_why", advice.api_why},
          {"next", advice.next}};
}

}  // namespace graphproof::reports
