#include "launcher/cli/bundle/redaction.h"

#include <gtest/gtest.h>

namespace graphproof::cli {
namespace {

TEST(Redaction, HidesWhatSaysWhoseMachineItIs) {
  Redaction redact;
  redact.hide("node-17", "HOST");
  redact.hide("alice", "USER");
  const struct {
    const char *text, *want;
  } rows[] = {
      {R"("file": "/home/alice/secret project/train.py")",
       R"("file": "PATH/secret project/train.py")"},
      {"at /home/alice/x/train.py:12.", "at PATH/train.py:12."},
      {"PATH=/data/alice:/usr/bin", "PATH=PATH/USER:/usr/bin"},
      {"node-17: connect to 10.1.22.3:4000.", "HOST: connect to ADDRESS:4000."},
      {"by 10.1.22.3.", "by ADDRESS."},
      {"mail a.b+c@corp.example now", "mail MAIL now"},
      {"GPU-01234567-89ab-cdef-0123-456789abcdef is lost", "GPU-ID is lost"},
      {"HF_TOKEN=hf_abc WANDB_API_KEY='x' A=b", "HF_TOKEN=(redacted) WANDB_API_KEY='x' A=b"},
      {"NCCL_API_KEY=x", "NCCL_API_KEY=(redacted)"},
  };
  for (const auto& row : rows) EXPECT_EQ(redact(row.text), row.want);
  EXPECT_EQ(redact.counts().at("HOST"), 1);
  EXPECT_EQ(redact.counts().at("ADDRESS"), 2);
}

TEST(Redaction, LeavesTheRest) {
  Redaction redact;
  redact.hide("vm", "HOST");
  redact.hide("r", "USER");
  for (const char* text :
       {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/dev/shm/x", "127.0.0.1:80", "0.0.0.0",
        "driver 580.159.04.1", "NCCL 2.28.9", "1.2.3.4.5", "samples/s and a/b/c", "llvm vmem",
        "1/2 of 3", "version 13.0.2", R"({"digest":"be7f4d3f8356efc1","loss":[5.25,5.27]})",
        "https://github.com/NVIDIA/nccl/issues/1", "a = b", "GPU-0"})
    EXPECT_EQ(redact(text), text);
  EXPECT_TRUE(redact.counts().empty());
  EXPECT_EQ(redact("vm"), "HOST");
}

}  // namespace
}  // namespace graphproof::cli
