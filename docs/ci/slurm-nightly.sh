#!/usr/bin/env bash
#SBATCH --job-name=graphproof
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --gpus-per-node=8
#SBATCH --time=08:00:00
#SBATCH --output=graphproof-%j.log
# The nightly run on one node of a cluster. `scrontab -e`, then:
#   #SCRON --chdir=/shared/graphproof
#   0 1 * * * sbatch docs/ci/slurm-nightly.sh
# A site may send the log of a job that failed by mail: #SBATCH --mail-type=FAIL
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"
history=${GRAPHPROOF_HISTORY:-$PWD/history.db}
run=runs/nightly-${SLURM_JOB_ID:-$(date +%Y%m%d-%H%M%S)}

./graphproof doctor
code=0
./graphproof run --profile nightly --device cuda --run-dir "$run" || code=$?
# 1: a case failed, which `baseline diff` judges. Anything else that is not 0 is no result.
[ "$code" -le 1 ] || exit "$code"
./graphproof history add "$run" --history "$history"
./graphproof baseline diff "$run" --history "$history"
