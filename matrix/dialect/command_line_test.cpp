// A command line is read as argparse reads it.
#include "matrix/dialect/command_line.h"

#include <gtest/gtest.h>

#include "matrix/dialect/check.h"
#include "matrix/testing/newest_megatron.h"

namespace graphproof::dialect {
namespace {

Reading read(const std::string& line) {
  return read_command_line(megatron(), shell_words(line), 0, false);
}

struct Taken {
  const char* line;
  const char* option;
  const char* value;  // JSON
};

TEST(CommandLine, ValuesAreTakenByNumberAndType) {
  const Taken rows[] = {
      {"--tensor-model-parallel-size 4", "tensor_model_parallel_size", "4"},
      {"--tensor-model-parallel-size=4", "tensor_model_parallel_size", "4"},
      {"--tensor-model-parallel-size 2 --tensor-model-parallel-size 8",
       "tensor_model_parallel_size", "8"},
      {"--cuda-graph-warmup-steps -1", "cuda_graph_warmup_steps", "-1"},
      {"--cuda-graph-warmup-steps 1_0", "cuda_graph_warmup_steps", "10"},
      {"--moe-expert-capacity-factor -1.5", "moe_expert_capacity_factor", "-1.5"},
      {"--no-check-for-nan-in-loss-and-grad", "check_for_nan_in_loss_and_grad", "false"},
      {"--rl-persist-cuda-graphs --no-rl-persist-cuda-graphs", "rl_persist_cuda_graphs", "false"},
      {"--cuda-graph-modules attn mlp --bf16", "cuda_graph_modules", R"(["attn","mlp"])"},
      {"--moe-layer-freq 2", "moe_layer_freq", R"(["1","0"])"},
      {"--moe-layer-freq '([0]*1+[1]*2)*2'", "moe_layer_freq", R"(["0","1","1","0","1","1"])"},
      {"", "cuda_graph_modules", "[]"},
      {"", "fp8", "null"},
  };
  for (const Taken& row : rows) {
    const Reading reading = read(row.line);
    EXPECT_TRUE(reading.findings.empty())
        << row.line << ": " << (reading.findings.empty() ? "" : reading.findings[0].got);
    EXPECT_EQ(effective_json(reading.configuration).at(row.option).dump(), row.value) << row.line;
  }
}

struct Wrong {
  const char* line;
  const char* rule;
  const char* got;
  int column;
  bool unknown;
};

TEST(CommandLine, WhatArgparseRefusesIsAFindingWithItsPlace) {
  const Wrong rows[] = {
      {"--bf16 --cuda-graph-impl te", "R001", "te", 8, false},
      {"--cuda-graph-modules attn,mlp", "R002", "attn,mlp", 1, false},
      {"--inference-cuda-graph-scope attn", "R004", "attn", 1, false},
      {"--tensor-model-parallel-size two", "RN02", "two", 1, false},
      {"--cuda-graph-impl", "RN03", "nothing after --cuda-graph-impl", 1, false},
      {"--cuda-graph-mod attn", "RN01", "--cuda-graph-mod", 1, false},
      {"--bf16 true", "RN01", "true", 8, false},
      {"--cuda-graph-anything", "RN01", "--cuda-graph-anything", 1, false},
      {"--my-own-script-option 3", "RN01", "--my-own-script-option", 1, true},
      {"--cuda-graph-use-single-mempool", "R006", "--cuda-graph-use-single-mempool", 1, false},
      {"--moe-layer-freq '([0]*x)'", "RN02", "([0]*x)", 1, false},
  };
  for (const Wrong& row : rows) {
    const Reading reading = read(row.line);
    ASSERT_EQ(reading.findings.size(), 1u) << row.line;
    const Finding& finding = reading.findings[0];
    EXPECT_EQ(finding.rule, row.rule) << row.line;
    EXPECT_EQ(finding.got, row.got) << row.line;
    EXPECT_EQ(finding.place.column, row.column) << row.line;
    EXPECT_EQ(finding.unknown, row.unknown) << row.line;
    EXPECT_FALSE(finding.next.empty()) << row.line;
  }
}

TEST(CommandLine, ErrorsComeInTheOrderOfTheLineAndUnknownOptionsLast) {
  const Verdict verdict =
      check(megatron(), read("--cuda-graph-mod attn --transformer-impl te --cuda-graph-impl te"));
  ASSERT_GE(verdict.findings.size(), 3u);
  EXPECT_EQ(verdict.findings[0].option, "transformer_impl");
  EXPECT_TRUE(verdict.findings[0].first);
  EXPECT_EQ(verdict.findings[1].rule, "R001");
  EXPECT_EQ(verdict.findings[2].rule, "RN01");
  EXPECT_NE(verdict.findings[2].next.find("did you mean `--cuda-graph-modules`"), std::string::npos)
      << verdict.findings[2].next;
}

TEST(CommandLine, TheProgramBeforeTheOptionsIsNotRead) {
  const std::vector<std::string> words = shell_words(
      "CUDA_DEVICE_MAX_CONNECTIONS=1 NCCL_ALGO= torchrun --nproc-per-node 8 --nnodes=2 "
      "pretrain_gpt.py --bf16");
  const Program program = read_program(words);
  EXPECT_EQ(words[program.first_option], "--bf16");
  EXPECT_EQ(program.world_size, 16);
  ASSERT_EQ(program.environment.size(), 2u);
  EXPECT_EQ(program.environment[1], std::make_pair(std::string("NCCL_ALGO"), std::string()));
  EXPECT_EQ(read_program({"--bf16"}).first_option, 0u);
}

TEST(CommandLine, ValuesThatFollowFromOthersAreDerivedBeforeTheRulesReadThem) {
  Reading reading = read(
      "--tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 8 --num-layers 8 "
      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
      "--recompute-activations");
  const nlohmann::json effective = effective_json(check(megatron(), std::move(reading)).effective);
  EXPECT_EQ(effective.at("gtp_weight_remat_size"), 4);
  EXPECT_EQ(effective.at("virtual_pipeline_model_parallel_size"), 2);
  EXPECT_EQ(effective.at("recompute_granularity"), "selective");
}

}  // namespace
}  // namespace graphproof::dialect
