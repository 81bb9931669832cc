// No attempt still passes after evidence that its verdict depends on is lost. Lines of recorded
// attempts that passed are removed or changed, as if the ranks had never written them or had
// written something else, and the attempt is judged again. Every kind of line that recorded runs
// have is in one of the tables below.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "reports/outcome/outcome.h"
#include "reports/record/evidence/former_names.h"
#include "reports/record/evidence/line_description.h"
#include "reports/record/run/summary.h"
#include "reports/record/text/file.h"
#include "suites/checks/check_table.h"
#include "suites/judge/attempt_folder.h"
#include "suites/recorded/recorded_runs.h"

namespace graphproof {
namespace {

namespace fs = std::filesystem;
using Line = record::EvidenceLine;
using nlohmann::json;

/// Lines that no verdict depends on. An empty arm means every arm.
struct Context {
  std::string_view kind, arm, why;
};
constexpr std::string_view kWithoutGraphs =
    "counts of replays are compared with the axes; those of eager_a are judged only in cases "
    "without "
    "graphs";
constexpr std::array kContext = {
    Context{"phase", "", "how long a phase took; the votes show that all ranks reached its end"},
    Context{"timing", "", "how long a step took: a figure"},
    Context{"busy", "", "how long the device was busy: a figure"},
    Context{"hyperparameter", "eager_a", kWithoutGraphs},
    Context{"hyperparameter", "lockstep_eager", kWithoutGraphs},
    Context{"recompute", "eager_a", kWithoutGraphs},
    Context{"recompute", "lockstep_eager", kWithoutGraphs},
    Context{"schedule", "eager_a", kWithoutGraphs},
    Context{"schedule", "lockstep_eager", kWithoutGraphs},
    Context{"fp8_weights", "eager_a", kWithoutGraphs},
    Context{"fp8_weights", "lockstep_eager", kWithoutGraphs},
    Context{"fp8_scaling", "eager_a", kWithoutGraphs},
    Context{"fp8_scaling", "lockstep_eager", kWithoutGraphs},
    Context{"experts", "eager_a", "replays are compared with the counts of lockstep_eager"},
    Context{"rng", "eager_a", "replays are compared with the states of lockstep_eager"},
    Context{"offload", "lockstep_eager", "the eager steps of eager_a are judged, by the same code"},
    Context{"products", "lockstep_eager",
            "the eager steps of eager_a are judged, by the same code"},
    Context{"node_dump", "", "where the nodes of a graph are written as text, for a reader"},
};

/// Kinds whose lines are compared with those of other ranks and with nothing else, so that they
/// matter only in attempts with several ranks; of `masks` only in those with ranks that draw the
/// same, as data and context parallel ones do.
const std::set<std::string> kBetweenRanks = {"held", "masks"};

/// Kinds of which a line of any rank is enough, so that only attempts of one rank show its loss.
const std::set<std::string> kOfAnyRank = {"unobserved"};

/// Kinds that only attempts have which do not pass.
const std::set<std::string> kNotInAPass = {"divergence", "error", "failed_capture", "refused"};

/// Kinds that no recorded run has yet.
const std::set<std::string> kNotRecorded = {};

/// A value in the last line with these fields, and the check that must fail if the value is wrong.
struct Compared {
  std::string kind;
  json where;
  std::string place;  // JSON pointer
  std::string check;
};
const std::vector<Compared> kCompared = {
    {"start", {}, "/case", "D21.evidence_complete"},
    {"config", {}, "/effective/deterministic", "D28.effective_config"},
    {"vote", {}, "/codes", "D26.votes"},
    {"step", {{"arm", "solo_eager"}}, "/digest", "D02.eager_repeats"},
    {"step", {{"arm", "solo_graph"}}, "/loss_bits", "D02.graph_repeats"},
    {"step", {{"arm", "lockstep_graph"}}, "/digest", "D01.capture_inputs_last"},
    {"rng", {{"arm", "lockstep_graph"}}, "/mask", "D08.masks"},
    {"rng", {{"arm", "lockstep_graph"}}, "/after", "D08.generator"},
    {"capture", {{"arm", "solo_graph"}}, "/signature", "D15.census"},
    {"capture", {{"arm", "free_graph"}}, "/counter_after", "D18.coverage"},
    {"state", {}, "/after", "D36.capture_changes_nothing"},
    {"address", {}, "/registered", "D07.static_addresses"},
    {"poison", {}, "/canary_words", "D03.outputs_written"},
    {"poison", {}, "/compared", "D03.outputs_written"},
    {"replay", {{"arm", "lockstep_graph"}}, "/replays", "D43.replays"},
    {"replay", {{"arm", "solo_graph"}}, "/counter_after", "D18.coverage"},
    {"hyperparameter",
     {{"arm", "lockstep_graph"}, {"name", "learning_rate"}},
     "/effective",
     "D04.learning_rate"},
    {"recompute", {{"arm", "lockstep_graph"}}, "/outputs_again", "D42.recompute"},
    {"recompute", {{"arm", "lockstep_graph"}}, "/counter_after", "D42.recompute"},
    {"recomputes", {{"arm", "lockstep_graph"}}, "/captured_again", "D42.recompute_captured"},
    {"experts", {{"arm", "lockstep_graph"}}, "/carried", "D40.expert_ledger"},
    {"schedule", {{"arm", "lockstep_graph"}}, "/ran", "D41.schedule"},
    {"fp8_weights", {{"arm", "lockstep_graph"}}, "/copies", "D39.fp8_weights"},
    {"fp8_scaling", {{"arm", "lockstep_graph"}}, "/updates", "D70.fp8_scaling"},
    {"host_waits", {}, "/waits", "D87.host_waits"},
    {"compare", {{"compared", "lockstep"}}, "/equal", "D01.lockstep"},
    {"compare", {{"compared", "lockstep"}}, "/tensors", "D01.lockstep"},
    {"compare", {{"compared", "free_run"}}, "/bytes", "D01.free_run"},
    {"reference", {}, "/max_abs", "D53.layout_reference"},
    {"collectives", {{"arm", "lockstep"}}, "/digest", "D25.collective_ledger"},
    {"placement", {}, "/straddles", "D28.placement"},
    {"memory",
     {{"arm", "solo_graph"}, {"when", "returned"}},
     "/reserved",
     "D30.returned_after_flush"},
    {"memory", {{"arm", "solo_graph"}, {"when", "step"}}, "/allocated", "D31.allocator_series"},
    {"handed_out", {}, "/later_digest", "D12.kept_losses"},
    {"operands", {}, "/freed", "D05.operands_alive"},
    {"scribbled", {}, "/step", "D06.freed_memory"},
    {"delayed_steps", {{"arm", "free_graph"}}, "/steps", "D13.late_replays"},
    {"evaluated", {}, "/replays", "D47.evaluation"},
    {"resumed", {}, "/replays", "D47.resume"},
    {"bucket", {}, "/length", "D43.shape_buckets"},
    {"bucket", {}, "/pool_bytes", "D34.graph_cache"},
    {"padding", {}, "/max_abs", "D38.padding"},
    {"evictions", {}, "/in_flight", "D29.idle_when_dropped"},
    {"host_work", {{"other_threads", json::object()}}, "/other_threads", "D61.foreign_threads"},
    {"exec_updates", {}, "/stale_launches", "D62.exec_update"},
    {"teardown", {{"step", "communicators"}}, "/order", "D29.teardown_order"},
    {"races", {}, "/count", "D56.races"},
    {"held", {}, "/digest", "D80.copies_agree"},
    {"masks", {}, "/digest", "D81.masks_between_ranks"},
    {"updates", {}, "/error", "D82.every_update"},
    {"infinity", {}, "/skipped", "D83.infinity_everywhere"},
    {"executed", {}, "/groups/0/begun", "D23.executed"},
    {"second_capture", {}, "/nodes_again", "D84.second_capture"},
    {"cycle", {{"arm", "soak_graph"}}, "/params_before_load", "D54.checkpoints"},
    {"batch", {{"arm", "free_graph"}}, "/size", "D71.batches"},
    {"sequences", {}, "/max_abs", "D73.whole_sequences"},
    {"distances", {{"compared", "graph_repeats"}}, "/tensors/0/max_abs", "D02.graph_repeats"},
    {"paired_block", {}, "/launches", "D44.stated_times"},
    {"communicators", {}, "/groups/0/left", "D29.communicators"},
    {"offload", {{"arm", "lockstep_graph"}}, "/fetched", "D85.activation_offload"},
    {"products", {{"arm", "eager_a"}}, "/in_32_bits", "D86.autocast"},
    {"derivative", {}, "/computed", "D92.derivative"},
    {"router_loss", {}, "/computed", "D92.derivative"},
    {"stash", {{"arm", "stash_graph"}}, "/carried", "D76.paged_stash"},
    // The first recorded case with such a line recomputes activations by PyTorch's own means.
    {"unobserved", {{"check", "D42.recompute"}}, "/check", "D42.recompute"},
    {"end", {}, "/complete", "D21.evidence_complete"},
};

/// Another value of the same type; of a list or map with its first value changed.
json damaged(json value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>() + 1;
  if (value.is_number()) return 2 * value.get<double>() + 1;
  if (value.is_string()) {
    auto text = value.get<std::string>();
    text.front() = text.front() == '0' ? '1' : '0';
    return text;
  }
  if (value.empty()) return value.is_object() ? json{{"0x0", 1}} : json::array({"0x0"});
  value.front() = damaged(value.front());
  return value;
}

const matrix::Catalogue& catalogue() {
  static const matrix::Catalogue loaded = matrix::load_catalogue();
  return loaded;
}

struct Recorded {
  std::string name;
  record::PlanLine plan;
  checks::Attempt attempt;

  /// The failing checks of a changed attempt, and its verdict.
  std::pair<std::set<std::string>, std::string> judged(const checks::Attempt& changed) const {
    const record::Checks results = checks::judge(changed, catalogue().checks);
    std::set<std::string> failing;
    for (const record::CheckResult& result : results.checks)
      if (result.result == record::Result::fail) failing.insert(result.check);
    const reports::OutcomeInput input{plan, changed.context, results, {}, /*today=*/"2026-01-01"};
    return {
        failing,
        std::string(
            reports::outcome(input, reports::check_effects(catalogue().checks)).verdict.text())};
  }
};

/// From this revision on evidence has the present arms; later revisions only add to it
/// (reports/record/evidence/evidence.h).
constexpr std::int64_t kOldestRevision = 5;

/// Whether a file has lines of `kind`, by the present name or a former one, with the fields
/// `where`.
bool has_line_of(const std::string& text, const std::string& kind, const json& where) {
  const auto named = [&](std::string_view name) {
    const std::string start = "{\"kind\":\"" + std::string(name) + "\"";
    for (std::size_t at = text.find(start); at != std::string::npos;
         at = text.find(start, at + 1)) {
      if (where.empty()) return true;
      const json line = json::parse(text.substr(at, text.find('\n', at) - at));
      if (std::ranges::all_of(where.items(), [&](const auto& item) {
            return line.value(item.key(), json()) == item.value();
          }))
        return true;
    }
    return false;
  };
  return named(kind) || std::ranges::any_of(record::former_kinds(), [&](const auto& former) {
           return former.is == kind && named(former.was);
         });
}

/// The attempts with graphs that passed on one device and have evidence of kOldestRevision or
/// newer, those of the newest revision first.
class Passed {
 public:
  explicit Passed(std::string device) {
    for (const fs::path& run : recorded_runs()) {
      const record::Summary summary =
          record::summary_from(record::read_json(run / "summary.json"), run / "summary.json");
      for (const record::SummaryCase& one : summary.cases) {
        const fs::path folder = run / "cases" / one.id / "attempt-1";
        if (one.verdict.text() != "pass" || !fs::exists(folder / "rank-0.evidence.jsonl")) continue;
        std::string text = record::read_text(folder / "rank-0.evidence.jsonl");
        constexpr std::string_view kRevision = "\"revision\":";
        const std::size_t revision = text.find(kRevision);
        if (revision == std::string::npos) continue;
        const std::int64_t number = std::stoll(text.substr(revision + kRevision.size()));
        if (number < kOldestRevision) continue;
        newest_revision_ = std::max(newest_revision_, number);
        const bool graphs = text.find("\"kind\":\"capture\"") != std::string::npos;
        if (graphs && text.find("\"device\":\"" + device + "\"") != std::string::npos)
          all_.push_back({run, one.id, number, std::move(text)});
      }
    }
    std::ranges::stable_sort(all_, std::ranges::greater(), &File::revision);
  }

  std::int64_t newest_revision() const { return newest_revision_; }

  /// The first that has a line of `kind` with the fields `where`.
  std::optional<Recorded> with(const std::string& kind, const json& where) const {
    for (const File& file : all_) {
      if (!has_line_of(file.text, kind, where)) continue;
      const fs::path second = file.run / "cases" / file.id / "attempt-1/rank-1.evidence.jsonl";
      const bool several = fs::exists(second);
      if (several ? kOfAnyRank.contains(kind) : kBetweenRanks.contains(kind)) continue;
      const auto plan =
          record::plan_from(record::read_text(file.run / "plan.jsonl"), file.run / "plan.jsonl");
      const auto line = std::ranges::find(plan, file.id, &record::PlanLine::id);
      // The check that was not observed is judged only of a case that recomputes.
      if (kind == "unobserved" && line->axes.value("recompute", "none") == "none") continue;
      if (kind == "masks" && line->axes.value("dp", 1) * line->axes.value("cp", 1) == 1) continue;
      return Recorded{file.run.filename().string() + "/" + file.id, *line,
                      judge::load_attempt(file.run / "cases" / file.id / "attempt-1",
                                          catalogue().axes, catalogue().checks)};
    }
    return std::nullopt;
  }

 private:
  struct File {
    fs::path run;
    std::string id;
    std::int64_t revision = 0;
    std::string text;
  };
  std::vector<File> all_;
  std::int64_t newest_revision_ = 0;
};

const std::array<Passed, 2>& passed() {
  static const std::array<Passed, 2> kPassed = {Passed("sim"), Passed("cuda")};
  return kPassed;
}

/// The kinds that recorded runs have. A kind that is newer than all of them is tested here after a
/// run of its revision has been recorded.
std::vector<std::string> kinds() {
  std::int64_t newest = 0;
  for (const Passed& one : passed()) newest = std::max(newest, one.newest_revision());
  std::vector<std::string> names;
  for (const record::KindDescription& kind : record::kind_descriptions())
    if (kind.since <= newest && !kNotRecorded.contains(kind.kind)) names.push_back(kind.kind);
  return names;
}

/// Calls `test` with an attempt of each device that has lines of `kind`, one of them with the
/// fields `where`. There must be at least one.
template <typename Test>
void for_attempts_with(const std::string& kind, const json& where, const Test& test) {
  int found = 0;
  for (const Passed& one : passed()) {
    const auto recorded = one.with(kind, where);
    if (!recorded) continue;
    ++found;
    ASSERT_EQ(recorded->judged(recorded->attempt).second, "pass") << recorded->name;
    test(*recorded);
  }
  EXPECT_GT(found, 0)
      << "no recorded attempt that passed has a line of kind " << kind
      << "; next: record one (suites/recorded/record), or add the kind to kNotInAPass or, until "
         "then, to kNotRecorded";
}

/// The arm of a line; "" if it has none.
std::string arm_of(const Line& line) { return line.fields.value("arm", ""); }

/// The attempt without the lines of a kind and arm, on rank 0 or on all ranks. The end line counts
/// the other lines, as if the removed ones had never been written.
checks::Attempt without(checks::Attempt attempt, const std::string& kind, const std::string& arm,
                        bool all_ranks) {
  for (checks::RankFiles& files : attempt.ranks) {
    if (files.rank != 0 && !all_ranks) continue;
    std::vector<Line>& lines = files.evidence->lines;
    std::erase_if(lines,
                  [&](const Line& line) { return line.kind == kind && arm_of(line) == arm; });
    if (!lines.empty() && lines.back().kind == "end")
      lines.back().fields["lines"] = lines.size() - 1;
    record::type_lines(*files.evidence);
  }
  return attempt;
}

const Context* context_of(const std::string& kind, const std::string& arm) {
  const auto row = std::ranges::find_if(kContext, [&](const Context& one) {
    return one.kind == kind && (one.arm.empty() || one.arm == arm);
  });
  return row == kContext.end() ? nullptr : &*row;
}

TEST(RecordedEvidence, FitsItsTablesAndIsWrittenAgainAsItWas) {
  std::size_t lines = 0;
  for (const fs::path& run : recorded_runs())
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run / "cases")) {
      if (!entry.path().string().ends_with(".evidence.jsonl")) continue;
      const record::Evidence evidence = record::read_evidence(entry.path());
      for (const record::DamagedLine& damaged : evidence.damaged)
        ADD_FAILURE() << entry.path() << ": " << to_text(damaged);
      for (const Line& line : evidence.lines) {
        ++lines;
        json written;
        record::with_typed(line,
                           [&](const auto& typed) { written = json(record::line_json(typed)); });
        json was = line.fields;  // a null that the table allows is not written again
        if (line.kind == record::CaptureLine::kKind && was.value("module_runs", json()).is_null())
          was.erase("module_runs");
        EXPECT_EQ(written, was) << entry.path() << " line " << line.line;
      }
    }
  EXPECT_GT(lines, 0u);
}

TEST(LostEvidence, OfAKindThatIsRecordedIsTested) {
  for (const std::string& kind : kNotRecorded)
    for (const Passed& one : passed())
      EXPECT_FALSE(one.with(kind, {}))
          << "a recorded attempt has a line of kind " << kind
          << "; next: take the kind from kNotRecorded, and add a value of it to kCompared";
}

TEST(LostEvidence, OfAKindAndArmEndsThePass) {
  for (const std::string& kind : kinds()) {
    if (kNotInAPass.contains(kind)) continue;
    for_attempts_with(kind, {}, [&](const Recorded& recorded) {
      std::set<std::string> arms;
      for (const Line& line : recorded.attempt.ranks.front().evidence->lines)
        if (line.kind == kind) arms.insert(arm_of(line));
      for (const std::string& arm : arms)
        for (const bool all_ranks : {false, true}) {
          const std::string verdict =
              recorded.judged(without(recorded.attempt, kind, arm, all_ranks)).second;
          const Context* context = context_of(kind, arm);
          EXPECT_EQ(verdict == "pass", context != nullptr)
              << recorded.name << " without lines of kind " << kind << ", arm `" << arm << "`, of "
              << (all_ranks ? "all ranks" : "rank 0") << ": " << verdict
              << (context ? "; they count as context"
                          : "; next: let a check demand them, or state in kContext why no "
                            "verdict depends on them");
        }
    });
  }
}

TEST(DamagedEvidence, FailsTheCheckThatComparesIt) {
  std::set<std::string> compared;
  for (const auto& [kind, where, place, check] : kCompared) {
    compared.insert(kind);
    for_attempts_with(kind, where, [&](const Recorded& recorded) {
      checks::Attempt changed = recorded.attempt;
      std::vector<Line>& lines = changed.ranks.front().evidence->lines;
      const auto line = std::find_if(lines.rbegin(), lines.rend(), [&](const Line& one) {
        return one.kind == kind && std::ranges::all_of(where.items(), [&](const auto& item) {
                 return one.fields.value(item.key(), json()) == item.value();
               });
      });
      ASSERT_NE(line, lines.rend())
          << recorded.name << ": no line of kind " << kind << " with " << where;
      json& value = line->fields.at(json::json_pointer(place));
      const json was = value;
      value = damaged(was);
      record::type_lines(*changed.ranks.front().evidence);
      const auto [failing, verdict] = recorded.judged(changed);
      EXPECT_TRUE(failing.contains(check))
          << recorded.name << ": " << place << " of kind " << kind << " is " << value
          << " in place of " << was << ", and " << check << " does not fail";
      EXPECT_NE(verdict, "pass");
    });
  }
  for (const std::string& kind : kinds())
    EXPECT_TRUE(compared.contains(kind) || kNotInAPass.contains(kind) || context_of(kind, ""))
        << "no value of kind " << kind << " is in kCompared";
}

}  // namespace
}  // namespace graphproof
