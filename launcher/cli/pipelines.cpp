#include "launcher/cli/pipelines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace graphproof::cli {
namespace {

std::string run_line(const Pipeline& pipeline, const std::string& shard,
                     const std::string& folder) {
  return fmt::format("./graphproof run --profile {} --device {} --shard {} --run-dir {}{}",
                     pipeline.profile, pipeline.device, shard, folder,
                     pipeline.budget.empty() ? "" : " --budget " + pipeline.budget);
}

}  // namespace

std::string gitlab_pipeline(const Pipeline& pipeline) {
  return fmt::format(
      R"(stages: [run, merge]

graphproof:
  stage: run
  tags: [{tags}]
  parallel: {shards}
  script:
    - {run}
  artifacts:
    when: always
    paths: [shards/]
    expire_in: 2 weeks

graphproof-report:
  stage: merge
  tags: [{tags}]
  when: always
  needs: [graphproof]
  script:
    - ./graphproof merge --run-dir merged shards/*
  artifacts:
    when: always
    paths: [merged/]
    reports:
      junit: merged/junit.xml
)",
      fmt::arg("tags", fmt::join(pipeline.tags, ", ")), fmt::arg("shards", pipeline.shards),
      fmt::arg("run",
               run_line(pipeline, "$CI_NODE_INDEX/$CI_NODE_TOTAL", "shards/$CI_NODE_INDEX")));
}

std::string github_pipeline(const Pipeline& pipeline) {
  std::string numbers;
  for (int shard = 1; shard <= pipeline.shards; ++shard)
    numbers += (shard == 1 ? "" : ", ") + std::to_string(shard);
  return fmt::format(
      R"(name: graphproof
on:
  schedule:
    - cron: "0 1 * * *"
  workflow_dispatch:

jobs:
  run:
    runs-on: [self-hosted, {tags}]
    strategy:
      fail-fast: false
      matrix:
        shard: [{numbers}]
    steps:
      - uses: actions/checkout@v4
      - run: {run}
      - if: always()
        uses: actions/upload-artifact@v4
        with:
          name: shard-${{{{ matrix.shard }}}}
          path: shards/

  report:
    if: always()
    needs: run
    runs-on: [self-hosted, {tags}]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/download-artifact@v4
        with:
          pattern: shard-*
          path: shards
          merge-multiple: true
      - run: ./graphproof merge --run-dir merged shards/*
      - if: always()
        run: cat merged/summary.md >> "$GITHUB_STEP_SUMMARY"
      - if: always()
        uses: actions/upload-artifact@v4
        with:
          name: merged
          path: merged/
)",
      fmt::arg("tags", fmt::join(pipeline.tags, ", ")), fmt::arg("numbers", numbers),
      fmt::arg("run", run_line(pipeline, fmt::format("${{{{ matrix.shard }}}}/{}", pipeline.shards),
                               "shards/${{ matrix.shard }}")));
}

std::string slurm_pipeline(const Pipeline& pipeline) {
  return fmt::format(
      R"(#!/bin/bash
# Submit with: bash THIS_FILE [sbatch options, such as --partition=gpu --gpus=8]
set -euo pipefail
folder=$PWD/runs/shards-$(date -u +%Y%m%d-%H%M%S)
mkdir -p "$folder"
array=$(sbatch --parsable --no-requeue --job-name=graphproof --array=1-{shards} \
  --output="$folder/shard-%a.log" "$@" --wrap \
  "{run}")
# afterany: a shard that failed is still part of the report.
sbatch --no-requeue --job-name=graphproof-merge --dependency=afterany:"$array" \
  --kill-on-invalid-dep=yes --output="$folder/merge.log" --wrap \
  "./graphproof merge --run-dir $folder/merged $folder/shard-*/"
echo "shards and report in $folder"
)",
      fmt::arg("shards", pipeline.shards),
      fmt::arg("run",
               run_line(pipeline, "\\$SLURM_ARRAY_TASK_ID/" + std::to_string(pipeline.shards),
                        "$folder/shard-\\$SLURM_ARRAY_TASK_ID")));
}

}  // namespace graphproof::cli
