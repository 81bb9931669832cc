#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

TEST(EffectiveConfig, Rows) {
  judge_rows(
      "D28.effective_config",
      {{"impl", "manual"}, {"allocator", "expandable"}, {"nccl_algo", "Ring"}},
      {
          {.name = "another capture mode in effect",
           .change = with_setting(0, "effective", "capture_mode", "global"),
           .rank = 0,
           .mentions = {"runs with another capture_mode than asked", "global", "thread_local"}},
          {.name = "the axis was not asked for",
           .change =
               [](Attempt& a) {
                 with_setting(0, "asked", "allocator", "default")(a);
                 with_setting(0, "effective", "allocator", "default")(a);
               },
           .rank = 0,
           .mentions = {"did not run with allocator expandable",
                        "asked for default, effective default"}},
          {.name = "an axis is neither asked for nor reported",
           .change =
               [](Attempt& a) {
                 with_setting(0, "asked", "NCCL_ALGO", nullptr)(a);
                 with_setting(0, "effective", "NCCL_ALGO", nullptr)(a);
               },
           .rank = 0,
           .mentions = {"nccl_algo Ring", "asked for nothing, effective nothing"}},
          {.name = "not in effect",
           .change = with_setting(0, "effective", "NCCL_ALGO", nullptr),
           .rank = 0,
           .mentions = {"NCCL_ALGO", "nothing"}},
          {.name = "in effect although unset",
           .change = with_setting(0, "effective", "NCCL_GRAPH_REGISTER", "1"),
           .rank = 0,
           .mentions = {"another NCCL_GRAPH_REGISTER than asked", "1"}},
          {.name = "nondeterministic",
           .change = with_setting(0, "effective", "deterministic", false),
           .rank = 0,
           .mentions = {"nondeterministic algorithms", "deterministic false"}},
          {.name = "no report whether it is deterministic",
           .change = with_setting(0, "effective", "deterministic", nullptr),
           .rank = 0,
           .mentions = {"may run nondeterministic algorithms", "deterministic unknown"}},
          {.name = "no report of MPI's thread level",
           .change = with_setting(0, "effective", "mpi_thread_level", nullptr),
           .rank = 0,
           .mentions = {"too low a thread level", "unknown"}},
          {.name = "MPI granted too little",
           .change = with_setting(0, "effective", "mpi_thread_level", "funneled"),
           .rank = 0,
           .mentions = {"too low a thread level", "funneled"}},
          {.name = "a capture in another mode",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "capture", .arm = "solo_graph"}, "mode", "relaxed");
               },
           .rank = 0,
           .mentions = {"was captured in another mode", "relaxed"}},
          {.name = "an empty line",
           .change =
               [](Attempt& a) { set(a, {.rank = 0, .kind = "config"}, "asked", json::object()); },
           .rank = 0,
           .mentions = {"is empty"}},
          {.name = "absent",
           .change = [](Attempt& a) { erase(a, {.rank = 0, .kind = "config"}); },
           .rank = 0,
           .mentions = {"`config` line"},
           .also = {"D28.one_libnccl"}},
      },
      "cuda");
}

TEST(EffectiveConfig, WhoIssuesCollectivesMustBeSaid) {
  const auto comm = [](json asked, json effective) {
    return [=](Attempt& attempt) {
      with_setting(1, "asked", "comm", asked)(attempt);
      with_setting(1, "effective", "comm", effective)(attempt);
    };
  };
  judge_rows(
      "D28.effective_config", {{"impl", "manual"}, {"tp", 2}, {"comm", "c10d"}},
      {
          {.name = "our own calls instead",
           .change = comm("c10d", "nccl"),
           .rank = 1,
           .mentions = {"runs with another comm than asked", "got nccl; want c10d"}},
          {.name = "no report",
           .change = comm(nullptr, nullptr),
           .rank = 1,
           .mentions = {"did not run with comm c10d", "asked for nothing, effective nothing"}},
      },
      "cuda");
  judge_rows("D28.effective_config", {{"impl", "manual"}, {"tp", 2}},
             {{.name = "PyTorch's instead",
               .change = comm("nccl", "c10d"),
               .rank = 1,
               .mentions = {"runs with another comm than asked", "got c10d; want nccl"}}},
             "cuda");
  EXPECT_EQ(judge_one("D28.effective_config", {{"impl", "manual"}, {"tp", 2}},
                      comm(nullptr, nullptr), "cuda")
                .result,
            record::Result::pass)
      << "recorded before there was another";
}

TEST(EffectiveConfig, IsUnexercisedWhereTheDeviceHasNoSuchThing) {
  const record::CheckResult result = judge_one(
      "D28.effective_config", {{"impl", "manual"}, {"allocator", "expandable"}}, [](Attempt&) {});
  EXPECT_EQ(result.result, record::Result::unexercised);
  EXPECT_EQ(result.message.got, "device sim has no allocator expandable");
}

TEST(EffectiveConfig, APackageMayChooseTheModesOfItsCaptures) {
  const auto in_mode = [](Attempt& a) {
    set(a, {.rank = 0, .kind = "capture", .arm = "solo_graph"}, "mode", "global");
  };
  judge_rows("D28.effective_config", {{"subject", "megatron_core"}, {"impl", "local"}},
             {{.name = "its modules are captured in a mode of its choice",
               .change = in_mode,
               .want = record::Result::pass,
               .rank = std::nullopt,
               .mentions = {}},
              {.name = "another setting",
               .change = with_setting(0, "effective", "capture_mode", "global"),
               .rank = 0,
               .mentions = {"another capture_mode than asked"}}});
  judge_rows("D28.effective_config", {{"impl", "local"}},
             {{.name = "our own engines are captured as the axis asks",
               .change = in_mode,
               .rank = 0,
               .mentions = {"was captured in another mode", "global"}}});
}

TEST(EffectiveConfig, TwoVersionsOfCudnnInAProcessAreADefect) {
  const std::string one = "9.19.0 of /packages/nvidia/cudnn/lib/libcudnn.so.9";
  judge_rows("D28.effective_config", {{"subject", "megatron_core"}, {"impl", "local"}},
             {{.name = "one",
               .change = with_setting(0, "effective", "libcudnn", one),
               .want = record::Result::pass,
               .rank = std::nullopt,
               .mentions = {}},
              {.name = "that of the system beside PyTorch's",
               .change = with_setting(0, "effective", "libcudnn",
                                      one + " and 9.14.0 of /usr/local/cuda/lib64/libcudnn.so.9"),
               .rank = 0,
               .mentions = {"rank 0 has more than one libcudnn", "9.14.0 of /usr/local/cuda",
                            "set CUDNN_HOME"}}});
}

TEST(EffectiveConfig, NondeterministicAlgorithmsAreThereIfTheCaseAsksForThem) {
  judge_rows("D28.effective_config",
             {{"impl", "manual"},
              {"embedding_gradient", "index_add"},
              {"deterministic_algorithms", "off"}},
             {{.name = "deterministic all the same",
               .change = with_setting(0, "effective", "deterministic", true),
               .rank = 0,
               .mentions = {"runs deterministic algorithms alone", "deterministic true",
                            "deterministic false"}}});
}

}  // namespace
}  // namespace graphproof::checks
