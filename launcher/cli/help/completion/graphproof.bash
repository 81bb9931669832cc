# shellcheck shell=bash disable=SC2034,SC2086
# Tab completion of ./graphproof. To use it:
#   source launcher/cli/help/completion/graphproof.bash
# Made from the declarations of the verbs by
#   build/bin/graphproof-generate

_graphproof_verbs='run resume rerun repro qualify bringup watch status report compare history
  baseline list explain shrink advise bundle bisect case check rules plan cover verify order
  new-subject merge ci doctor selftest test help'
_graphproof_axes='subject impl modules inference_scope tp pp vpp dp cp ep etp sequence_parallel
  microbatches microbatch_group comm cp_comm_type recompute model layers hidden heads kv_groups ffn
  vocab experts topk qkv_bias linear_bias normalization activation position_embedding
  tied_embeddings dispatch dispatcher router_aux_loss router_z_loss router_score_correction
  shared_expert shared_expert_overlap embedding_gradient attention_kernel multi_latent_attention
  mtp_num_layers precision autocast loss_scale fp8_weights first_last_layers_bf16 arch
  encoder_layers images image_counts vision_seq_length vision_length vision_positions
  vision_merge_size freeze_vision_model captured_models dropout rng_tracker optimizer clip_grad
  weight_decay optimizer_graph distributed_optimizer grad_accumulation_fusion delay_wgrad
  overlap_ep_comm overlap_grad_reduce overlap_param_gather nan_check_loss nan_check_grad
  cpu_offload seq_length microbatch_size packed shape_buckets warmup_steps steps schedule resume_in
  batch_sizes prefill_chunk cache_blocks sampling pool share_io_buffers capture_mode capture_stream
  recapture autograd_threads nccl_graph_register allocator placement teardown nccl_algo nccl_proto
  deterministic_algorithms sanitizer collective collective_bytes layer_spec autocast_cache
  optimizer_kernels checkpoint graph_trees graph_partition compiled_code op_fuser earlier_graph
  layer_calls reshard_after_forward perf_limit memory_limit soak_steps tolerance fault'
declare -gA _graphproof_options _graphproof_values

_graphproof_options[run]='
  --profile --matrix --where --device --ranks-per-gpu --cases-per-gpu --seed --extend --shard
  --run-dir --isolation --cold --confirm --budget --max-fail --max-gpu-minutes --launcher --hosts
  --nodes --slots --cpus-per-slot --partition --account --qos --time-limit --constraint --node-arch
  --slurm-arg --container-image --container-mounts --apptainer --env-file --queue-limit --like
  --dialect --version --world-size --arch --env --stack --json --help'
_graphproof_values[run --profile]='PROFILE'
_graphproof_values[run --matrix]='FILE'
_graphproof_values[run --where]='EXPR'
_graphproof_values[run --device]='auto sim cuda'
_graphproof_values[run --ranks-per-gpu]='-'
_graphproof_values[run --cases-per-gpu]='-'
_graphproof_values[run --seed]='-'
_graphproof_values[run --extend]='RUN'
_graphproof_values[run --shard]='-'
_graphproof_values[run --run-dir]='FOLDER'
_graphproof_values[run --isolation]='planned process batch'
_graphproof_values[run --confirm]='-'
_graphproof_values[run --budget]='-'
_graphproof_values[run --max-fail]='-'
_graphproof_values[run --max-gpu-minutes]='-'
_graphproof_values[run --launcher]='local mpirun slurm slurm-array'
_graphproof_values[run --hosts]='-'
_graphproof_values[run --nodes]='-'
_graphproof_values[run --slots]='-'
_graphproof_values[run --cpus-per-slot]='-'
_graphproof_values[run --partition]='-'
_graphproof_values[run --account]='-'
_graphproof_values[run --qos]='-'
_graphproof_values[run --time-limit]='-'
_graphproof_values[run --constraint]='-'
_graphproof_values[run --node-arch]='-'
_graphproof_values[run --slurm-arg]='-'
_graphproof_values[run --container-image]='-'
_graphproof_values[run --container-mounts]='-'
_graphproof_values[run --apptainer]='-'
_graphproof_values[run --env-file]='FILE'
_graphproof_values[run --queue-limit]='-'
_graphproof_values[run --like]='FILE'
_graphproof_values[run --dialect]='megatron-lm megatron-bridge legacy pytorch graphproof'
_graphproof_values[run --version]='-'
_graphproof_values[run --world-size]='-'
_graphproof_values[run --arch]='-'
_graphproof_values[run --env]='-'
_graphproof_values[run --stack]='-'

_graphproof_options[resume]='
  --json --help'
_graphproof_values[resume 1]='RUN'

_graphproof_options[rerun]='
  --failed --infra --verdict --where --run-dir --isolation --cold --confirm --budget --max-fail
  --max-gpu-minutes --launcher --hosts --nodes --slots --cpus-per-slot --partition --account --qos
  --time-limit --constraint --node-arch --slurm-arg --container-image --container-mounts
  --apptainer --env-file --queue-limit --json --help'
_graphproof_values[rerun --verdict]='-'
_graphproof_values[rerun --where]='EXPR'
_graphproof_values[rerun --run-dir]='FOLDER'
_graphproof_values[rerun --isolation]='planned process batch'
_graphproof_values[rerun --confirm]='-'
_graphproof_values[rerun --budget]='-'
_graphproof_values[rerun --max-fail]='-'
_graphproof_values[rerun --max-gpu-minutes]='-'
_graphproof_values[rerun --launcher]='local mpirun slurm slurm-array'
_graphproof_values[rerun --hosts]='-'
_graphproof_values[rerun --nodes]='-'
_graphproof_values[rerun --slots]='-'
_graphproof_values[rerun --cpus-per-slot]='-'
_graphproof_values[rerun --partition]='-'
_graphproof_values[rerun --account]='-'
_graphproof_values[rerun --qos]='-'
_graphproof_values[rerun --time-limit]='-'
_graphproof_values[rerun --constraint]='-'
_graphproof_values[rerun --node-arch]='-'
_graphproof_values[rerun --slurm-arg]='-'
_graphproof_values[rerun --container-image]='-'
_graphproof_values[rerun --container-mounts]='-'
_graphproof_values[rerun --apptainer]='-'
_graphproof_values[rerun --env-file]='FILE'
_graphproof_values[rerun --queue-limit]='-'
_graphproof_values[rerun 1]='RUN'
_graphproof_values[rerun +]='CASE'

_graphproof_options[repro]='
  --device --ranks-per-gpu --run-dir --script --gdb-rank --compute-sanitizer --nsys --seed --json
  --help'
_graphproof_values[repro --device]='auto sim cuda'
_graphproof_values[repro --ranks-per-gpu]='-'
_graphproof_values[repro --run-dir]='FOLDER'
_graphproof_values[repro --script]='FILE'
_graphproof_values[repro --gdb-rank]='-'
_graphproof_values[repro --compute-sanitizer]='memcheck racecheck initcheck synccheck'
_graphproof_values[repro --seed]='-'
_graphproof_values[repro 1]='CASE'

_graphproof_options[qualify]='
  --stages --device --run-dir --resume --minisign --image --with --program --parts --json --help'
_graphproof_values[qualify --stages]='-'
_graphproof_values[qualify --device]='auto sim cuda'
_graphproof_values[qualify --run-dir]='FOLDER'
_graphproof_values[qualify --resume]='FOLDER'
_graphproof_values[qualify --minisign]='FILE'
_graphproof_values[qualify --image]='-'
_graphproof_values[qualify --with]='-'
_graphproof_values[qualify --program]='-'
_graphproof_values[qualify --parts]='-'

_graphproof_options[bringup]='
  --device --ranks-per-gpu --seed --like --dialect --version --world-size --arch --env --stack
  --json --help'
_graphproof_values[bringup --device]='auto sim cuda'
_graphproof_values[bringup --ranks-per-gpu]='-'
_graphproof_values[bringup --seed]='-'
_graphproof_values[bringup --like]='FILE'
_graphproof_values[bringup --dialect]='megatron-lm megatron-bridge legacy pytorch graphproof'
_graphproof_values[bringup --version]='-'
_graphproof_values[bringup --world-size]='-'
_graphproof_values[bringup --arch]='-'
_graphproof_values[bringup --env]='-'
_graphproof_values[bringup --stack]='-'
_graphproof_values[bringup 1]='CASE'

_graphproof_options[watch]='
  --profile --graph-share --against --hang-after --no-cupti --run-dir --attach-only --form
  --without-cuda --finish --json --help'
_graphproof_values[watch --profile]='quick full'
_graphproof_values[watch --graph-share]='-'
_graphproof_values[watch --against]='RUN'
_graphproof_values[watch --hang-after]='-'
_graphproof_values[watch --run-dir]='-'
_graphproof_values[watch --form]='shell env docker apptainer'
_graphproof_values[watch --without-cuda]='-'
_graphproof_values[watch --finish]='RUN'

_graphproof_options[status]='
  --watch --json --help'
_graphproof_values[status 1]='RUN'

_graphproof_options[report]='
  --judge-again --format --json --help'
_graphproof_values[report --format]='-'
_graphproof_values[report 1]='RUN'

_graphproof_options[compare]='
  --fail-on --format --json --help'
_graphproof_values[compare --fail-on]='-'
_graphproof_values[compare --format]='text markdown html'
_graphproof_values[compare 1]='RUN'
_graphproof_values[compare 2]='RUN'

_graphproof_options[history]='
  --history --runs --json --help'
_graphproof_values[history --history]='FILE'
_graphproof_values[history --runs]='-'
_graphproof_values[history 1]='add show flaky trend'
_graphproof_values[history +]='-'

_graphproof_options[baseline]='
  --reason --owner --until --history --json --help'
_graphproof_values[baseline --reason]='-'
_graphproof_values[baseline --owner]='-'
_graphproof_values[baseline --until]='-'
_graphproof_values[baseline --history]='FILE'
_graphproof_values[baseline 1]='accept show diff'
_graphproof_values[baseline 2]='-'

_graphproof_options[list]='
  --run --json --help'
_graphproof_values[list --run]='RUN'
_graphproof_values[list 1]='axes profiles rules checks faults runs cases'

_graphproof_options[explain]='
  --device --json --help'
_graphproof_values[explain --device]='auto sim cuda'
_graphproof_values[explain 1]='CASE'

_graphproof_options[shrink]='
  --jobs --most-jobs --budget --assume-noise --seed --device --json --help'
_graphproof_values[shrink --jobs]='-'
_graphproof_values[shrink --most-jobs]='-'
_graphproof_values[shrink --budget]='-'
_graphproof_values[shrink --assume-noise]='-'
_graphproof_values[shrink --seed]='-'
_graphproof_values[shrink --device]='auto sim cuda'
_graphproof_values[shrink 1]='CASE'

_graphproof_options[advise]='
  --json --help'
_graphproof_values[advise 1]='RUN CASE'

_graphproof_options[bundle]='
  --file --json --help'
_graphproof_values[bundle --file]='FILE'
_graphproof_values[bundle 1]='CASE'

_graphproof_options[bisect]='
  --device --folder --json --help'
_graphproof_values[bisect --device]='auto sim cuda'
_graphproof_values[bisect --folder]='FOLDER'
_graphproof_values[bisect 1]='FILE'
_graphproof_values[bisect 2]='FILE'
_graphproof_values[bisect 3]='CASE'

_graphproof_options[case]='
  --device --json --like --dialect --version --world-size --arch --env --stack --help'
_graphproof_values[case --device]='auto sim cuda'
_graphproof_values[case --like]='FILE'
_graphproof_values[case --dialect]='megatron-lm megatron-bridge legacy pytorch graphproof'
_graphproof_values[case --version]='-'
_graphproof_values[case --world-size]='-'
_graphproof_values[case --arch]='-'
_graphproof_values[case --env]='-'
_graphproof_values[case --stack]='-'
_graphproof_values[case 1]='CASE'

_graphproof_options[check]='
  --dialect --version --world-size --arch --env --stack --migrate --all --json --sarif --help'
_graphproof_values[check --dialect]='megatron-lm megatron-bridge legacy pytorch graphproof'
_graphproof_values[check --version]='-'
_graphproof_values[check --world-size]='-'
_graphproof_values[check --arch]='-'
_graphproof_values[check --env]='-'
_graphproof_values[check --stack]='-'
_graphproof_values[check 1]='FILE'

_graphproof_options[rules]='
  --dialect --version --coverage --json --help'
_graphproof_values[rules --dialect]='graphproof megatron-lm megatron-bridge legacy pytorch'
_graphproof_values[rules --version]='-'
_graphproof_values[rules 1]='-'

_graphproof_options[plan]='
  --profile --matrix --where --device --ranks-per-gpu --cases-per-gpu --seed --extend --explain
  --json --help'
_graphproof_values[plan --profile]='PROFILE'
_graphproof_values[plan --matrix]='FILE'
_graphproof_values[plan --where]='EXPR'
_graphproof_values[plan --device]='auto sim cuda'
_graphproof_values[plan --ranks-per-gpu]='-'
_graphproof_values[plan --cases-per-gpu]='-'
_graphproof_values[plan --seed]='-'
_graphproof_values[plan --extend]='RUN'
_graphproof_values[plan --explain]='-'

_graphproof_options[cover]='
  --format --device --strength --require --extend --cost --seconds --steps --seed --threads
  --searches --starts --out --explain --json --help'
_graphproof_values[cover --format]='auto pict acts clauses graphproof'
_graphproof_values[cover --device]='auto sim cuda'
_graphproof_values[cover --strength]='-'
_graphproof_values[cover --require]='FILE'
_graphproof_values[cover --extend]='FILE'
_graphproof_values[cover --cost]='FILE'
_graphproof_values[cover --seconds]='-'
_graphproof_values[cover --steps]='-'
_graphproof_values[cover --seed]='-'
_graphproof_values[cover --threads]='-'
_graphproof_values[cover --searches]='-'
_graphproof_values[cover --starts]='-'
_graphproof_values[cover --out]='FILE'
_graphproof_values[cover 1]='FILE'

_graphproof_options[verify]='
  --format --device --strength --json --help'
_graphproof_values[verify --format]='auto pict acts clauses graphproof'
_graphproof_values[verify --device]='auto sim cuda'
_graphproof_values[verify --strength]='-'
_graphproof_values[verify 1]='FILE'
_graphproof_values[verify 2]='FILE'

_graphproof_options[order]='
  --pp --pp-rank --vpp --microbatches --group --layers --overlap-ep --wgrad --json --help'
_graphproof_values[order --pp]='-'
_graphproof_values[order --pp-rank]='-'
_graphproof_values[order --vpp]='-'
_graphproof_values[order --microbatches]='-'
_graphproof_values[order --group]='-'
_graphproof_values[order --layers]='-'

_graphproof_options[new-subject]='
  --json --help'
_graphproof_values[new-subject 1]='FILE'

_graphproof_options[merge]='
  --run-dir --json --help'
_graphproof_values[merge --run-dir]='FOLDER'
_graphproof_values[merge +]='RUN'

_graphproof_options[ci]='
  --shards --profile --device --budget --tag --json --help'
_graphproof_values[ci --shards]='-'
_graphproof_values[ci --profile]='PROFILE'
_graphproof_values[ci --device]='cuda sim'
_graphproof_values[ci --budget]='-'
_graphproof_values[ci --tag]='-'
_graphproof_values[ci 1]='gitlab github slurm'

_graphproof_options[doctor]='
  --device --libraries --json --help'
_graphproof_values[doctor --device]='auto sim cuda'

_graphproof_options[selftest]='
  --device --json --help'
_graphproof_values[selftest --device]='auto sim cuda'

_graphproof_options[test]='
  --help'

_graphproof_options[help]='
  --json --help'
_graphproof_values[help 1]='VERB'

# Prints the words that a value of KIND may be; ROOT is the folder of this source tree.
_graphproof_candidates() {  # KIND ROOT
  local path
  case $1 in
    - | FILE | FOLDER) ;;
    AXIS | EXPR) printf '%s\n' $_graphproof_axes ;;
    CASE) printf '%s=\n' $_graphproof_axes ;;
    PROFILE)
      for path in "$2"/matrix/profiles/*.json; do
        path=${path##*/}
        printf '%s\n' "${path%.json}"
      done
      ;;
    RUN)
      printf 'latest\n'
      for path in runs/*/run.json runs/*/watched.json; do
        [ -e "$path" ] || continue
        path=${path%/*}
        printf '%s\n' "${path##*/}"
      done
      ;;
    VERB) printf '%s\n' $_graphproof_verbs ;;
    *) printf '%s\n' $1 ;;
  esac
}

_graphproof() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local verb=${COMP_WORDS[1]} command=${COMP_WORDS[0]} head='' kind='' root position=1 i
  COMPREPLY=()
  command=${command/#\~/$HOME}
  [[ $command == */* ]] || command=$(type -P "$command")
  root=${command%/*}
  [ -d "$root/matrix/profiles" ] || root=$root/../..  # build/bin/graphproof
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$_graphproof_verbs" -- "$word")
    return
  fi
  # Bash splits words at `=`: `--device=sim` is three words, and so is `tp=2`.
  for ((i = 2; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --)
        compopt -o default
        return
        ;;
      =) ((++i)) ;;
      --*)
        if [[ -n ${_graphproof_values[$verb ${COMP_WORDS[i]}]-} &&
          ${COMP_WORDS[i + 1]} != '=' ]]; then
          ((++i))
        fi
        ;;
      *) ((++position)) ;;
    esac
  done
  if [[ $word == = || $before == = ]]; then
    if [[ $word == = ]]; then word=''; else before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    [[ $before == --* ]] || ((--position))  # the argument before `=` is the one being written
  fi
  if [[ $before == --* ]]; then kind=${_graphproof_values[$verb $before]-}; fi
  if [[ -z $kind && $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_graphproof_options[$verb]-}" -- "$word")
    return
  fi
  if [[ -z $kind ]]; then
    kind=${_graphproof_values[$verb $position]-${_graphproof_values[$verb +]-}}
  fi
  case $kind in
    FILE) compopt -o default ;;
    FOLDER) compopt -o dirnames ;;
    CASE)
      compopt -o nospace
      # A case is several assignments: impl=manual,tp=2.
      if [[ $word == *,* ]]; then
        head=${word%,*},
      elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = || ${COMP_WORDS[COMP_CWORD]} == = ]]; then
        return
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(
    compgen -P "$head" -W "$(_graphproof_candidates "${kind:--}" "$root")" -- "${word#"$head"}"
  )
  if [[ -z $word && ${#COMPREPLY[@]} == 0 && $before != --* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_graphproof_options[$verb]-}")
  fi
}

complete -F _graphproof graphproof
