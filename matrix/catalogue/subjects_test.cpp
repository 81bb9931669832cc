#include "matrix/catalogue/subjects.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "matrix/catalogue/catalogue.h"
#include "matrix/plan/plan.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

const Catalogue& catalogue() {
  static const Catalogue loaded = load_catalogue();  // read once, never changed
  return loaded;
}

Case case_of_name(const std::string& name) { return case_from_name(catalogue().axes, name, ""); }

const Machine kGpus{
    .device = "cuda", .slots = 2, .stack = {{"sm", "90"}, {"hybrid_ep", "1.2.1"}, {"apex", "0.1"}}};

TEST(SubjectsTest, EveryAxisMeansSomethingForEverySubjectOrKeepsItsDefault) {
  for (const Subject& subject : catalogue().subjects.subjects())
    for (const Axis& axis : catalogue().axes.axes()) {
      const auto found = subject.axes.find(axis.name);
      if (subject.name == kReference && found == subject.axes.end()) continue;  // axes.json
      ASSERT_NE(found, subject.axes.end()) << subject.name << " " << axis.name;
      EXPECT_FALSE(found->second.means.empty() && found->second.missing.empty())
          << subject.name << " " << axis.name;
    }
}

TEST(SubjectsTest, ADefaultIsAllowedWhereAnAxisIsFixed) {
  // Otherwise no case of the subject could run.
  for (const Subject& subject : catalogue().subjects.subjects()) {
    Case test_case;
    set_value(catalogue().axes, test_case, "subject", subject.name);
    for (const auto& [axis, meaning] : subject.axes) {
      if (!meaning.means.empty()) continue;
      EXPECT_EQ(meaning.can->holds(test_case, kGpus), Truth::yes) << subject.name << " " << axis;
    }
  }
}

TEST(SubjectsTest, TheSubjectChangesNoIdAndIsTheFirstPartOfAName) {
  EXPECT_EQ(case_name(catalogue().axes, case_of_name("impl=local,subject=reference")),
            "impl=local");
  EXPECT_EQ(case_id(case_of_name("impl=local,subject=reference")),
            case_id(case_of_name("impl=local")));
  EXPECT_EQ(case_name(catalogue().axes, case_of_name("tp=2,impl=local,subject=megatron_core")),
            "subject=megatron_core,impl=local,tp=2");
}

TEST(SubjectsTest, ARuleBindsTheSubjectsThatRunTheCodeOfItsSource) {
  using Names = std::vector<std::string>;
  const SubjectTable& table = catalogue().subjects;
  EXPECT_EQ(table.bound_by("Megatron-LM megatron/core/transformer/transformer_config.py:1"),
            (Names{"reference", "megatron_core"}));
  // The command line of Megatron-LM is no part of Megatron-Core.
  EXPECT_EQ(table.bound_by("Megatron-LM megatron/training/arguments.py:1"), Names{"reference"});
  EXPECT_EQ(table.bound_by("graphproof"), Names{"reference"});
  EXPECT_EQ(table.bound_by("Megatron-Bridge a.py; Megatron-LM megatron/core/b.py"),
            (Names{"reference", "megatron_core"}));
  EXPECT_EQ(table.bound_by("an unknown project"), Names{});
  const auto refused_by = [](const std::string& name) {
    const auto refusal = catalogue().rules.refusal(case_of_name(name), kGpus);
    return refusal ? refusal->rule : "";
  };
  EXPECT_EQ(refused_by("impl=transformer_engine,modules=[moe]"), "R073");
  EXPECT_EQ(refused_by("subject=megatron_core,impl=transformer_engine,modules=[moe]"), "R073");
  EXPECT_EQ(refused_by("impl=full_iteration,modules=[attn]"), "R033");
  EXPECT_EQ(refused_by("subject=megatron_core,impl=full_iteration,modules=[attn]"), "")
      << "an argument of the command line, which Megatron-Core does not have";
  EXPECT_EQ(refused_by("subject=torch,impl=callables,precision=bf16,autocast_cache=true"), "P001");
  EXPECT_EQ(refused_by("impl=local,autocast=bf16,autocast_cache=true"), "P001");
  EXPECT_EQ(refused_by("impl=full_iteration,autocast=bf16,autocast_cache=true"), "");
}

TEST(SubjectsTest, WhatASubjectCannotDoIsSkippedWithItsReason) {
  const auto missing = [](const std::string& name, const Machine& machine = kGpus) {
    return catalogue().capabilities.missing(case_of_name(name), machine);
  };
  using Reasons = std::vector<std::string>;
  EXPECT_EQ(missing("subject=torch,impl=manual,optimizer_kernels=fused"), Reasons{});
  EXPECT_EQ(missing("subject=torch,impl=manual"),
            Reasons{"optimizer=sgd, impl=manual, schedule=train, optimizer_graph=false, "
                    "optimizer_kernels=single: unless it is fused, SGD of PyTorch reads a learning "
                    "rate in a tensor on the host, which no capture allows"});
  EXPECT_EQ(missing("subject=torch,impl=manual,schedule=decode"), Reasons{});
  EXPECT_EQ(missing("subject=torch,impl=full_iteration,schedule=decode").size(), 1u);
  EXPECT_EQ(missing("subject=torch,impl=callables,capture_mode=global,shape_buckets=2"), Reasons{});
  EXPECT_EQ(missing("subject=torch,impl=callables,capture_mode=global,shape_buckets=2,"
                    "pool=per_graph"),
            Reasons{"shape_buckets=2, impl=callables, pool=per_graph: graphs of several lengths "
                    "are made by full_iteration and by callables, each length with a pool of its "
                    "own"});
  EXPECT_EQ(missing("subject=torch_compile,impl=full_iteration,shape_buckets=2"),
            Reasons{"shape_buckets=2: steps of changing lengths are built for torch and "
                    "reference alone"});
  EXPECT_EQ(missing("subject=torch_compile,impl=full_iteration,schedule=resume"),
            Reasons{"schedule=resume, resume_in=same_process: for this subject only training, a "
                    "resumed job in a new process and decoding are built"});
  EXPECT_EQ(missing("subject=torch_compile,impl=callables,schedule=resume,resume_in=new_process,"
                    "steps=7"),
            Reasons{});
  EXPECT_EQ(missing("subject=torch,impl=full_iteration,resume_in=new_process,steps=7"),
            Reasons{"resume_in=new_process, schedule=train: only a job that resumes has a second "
                    "process"});
  EXPECT_EQ(missing("impl=manual,schedule=resume,resume_in=new_process,steps=7"), Reasons{});
  EXPECT_EQ(missing("impl=manual,schedule=resume,resume_in=new_process"),
            Reasons{"resume_in=new_process, steps=5, warmup_steps=2: the checkpoint is written "
                    "after a replay, and the job that loads it warms up and replays twice"});
  EXPECT_EQ(missing("subject=torch,impl=full_iteration,recompute=full(block,1),dropout=true"),
            Reasons{"recompute=full(block,1), dropout=true, impl=full_iteration: "
                    "torch.utils.checkpoint reads and sets the state of a generator, which no "
                    "capture allows"});
  EXPECT_EQ(missing("subject=torch,impl=local"),
            Reasons{"impl=local: PyTorch has no such implementation; local and "
                    "transformer_engine are those of Megatron-Core and Transformer Engine"});
  EXPECT_EQ(missing("subject=torch,impl=manual,optimizer_kernels=fused,comm=c10d,tp=2"),
            Reasons{"tp=2: this subject is parallel over data alone"});
  EXPECT_EQ(missing("subject=megatron_core,impl=local,comm=c10d,tp=2"), Reasons{});
  EXPECT_EQ(missing("subject=megatron_core,impl=local,tp=2"),
            Reasons{"tp=2, pp=1, dp=1, cp=1, comm=nccl: the collectives of this subject are those "
                    "of PyTorch's process groups"});
  EXPECT_EQ(missing("subject=torch,impl=manual,optimizer_kernels=fused", {.device = "sim"}),
            Reasons{"device=sim: CUDA graphs of PyTorch need a GPU"});
  EXPECT_EQ(missing("impl=manual,autocast_cache=true"),
            Reasons{"autocast_cache=true, autocast=none: without autocast nothing is cast"});
  EXPECT_EQ(
      missing("subject=torch,impl=full_iteration,autocast=bf16"),
      Reasons{"autocast=bf16: autocast is what precision bf16 and fp16 are for this subject"});
  EXPECT_EQ(missing("subject=script,impl=manual"),
            Reasons{"env.GRAPHPROOF_SCRIPT=unset: env.GRAPHPROOF_SCRIPT has to name the file of "
                    "the user"});
  EXPECT_EQ(missing("subject=script,impl=manual,env.GRAPHPROOF_SCRIPT=mine.py"), Reasons{});
}

TEST(SubjectsTest, APartOfAPackageSkipsTheCasesThatNeedIt) {
  const char* name =
      "subject=megatron_core,model=moe,experts=4,topk=2,dispatcher=flex,dispatch=dropless,dp=2,"
      "ep=2,comm=c10d,seq_length=64,layer_spec=transformer_engine,precision=bf16";
  Machine machine = kGpus;
  EXPECT_EQ(catalogue().capabilities.missing(case_of_name(name), machine),
            std::vector<std::string>{});
  machine.stack["hybrid_ep"] = "none";
  EXPECT_EQ(catalogue().capabilities.missing(case_of_name(name), machine).size(), 1u);
  machine.stack.erase("hybrid_ep");  // nobody was asked
  EXPECT_EQ(catalogue().capabilities.missing(case_of_name(name), machine).size(), 1u);
}

TEST(SubjectsTest, APackageThatIsNotThereSkipsTheCasesOfItsSubjectAlone) {
  Machine machine = kGpus;
  machine.unavailable = {{"megatron_core", "megatron-core is not installed"}};
  const auto skip = [&](const char* name) {
    return plan_case(catalogue(), case_of_name(name), machine, "").skip;
  };
  ASSERT_TRUE(skip("subject=megatron_core,impl=local"));
  EXPECT_EQ(skip("subject=megatron_core,impl=local")->verdict.text(), "skipped.capability");
  EXPECT_EQ(skip("subject=megatron_core,impl=local")->why,
            "subject=megatron_core: megatron-core is not installed");
  EXPECT_FALSE(skip("subject=torch,impl=manual,optimizer_kernels=fused"));
  EXPECT_FALSE(skip("impl=local"));
  // A refusal by the package's own code needs the package.
  EXPECT_TRUE(
      skip("subject=megatron_core,impl=transformer_engine,modules=[moe],"
           "layer_spec=transformer_engine"));
}

TEST(SubjectsTest, TheProfileHasTheSameCasesWhateverIsInstalled) {
  const auto planned = [](const char* profile, const Machine& machine) {
    const MatrixFile file = shipped_matrix_file(profile, catalogue());
    std::vector<std::string> ids;
    for (const record::PlanLine& line :
         make_plan(file, catalogue(), profile, machine, std::nullopt).lines)
      if (line.axes.at("subject") != "reference") ids.push_back(line.id);
    return ids;
  };
  Machine bare = kGpus;
  for (const Subject& subject : catalogue().subjects.subjects())
    if (subject.name != kReference) bare.unavailable[subject.name] = "not installed";
  const Machine sim{.device = "sim", .slots = 4, .stack = {}};
  for (const char* profile : {"subjects", "nightly"}) {
    const std::vector<std::string> ids = planned(profile, kGpus);
    EXPECT_GE(ids.size(), 8u);
    EXPECT_EQ(planned(profile, bare), ids);
    EXPECT_EQ(planned(profile, sim), ids);
  }
}

TEST(SubjectsTest, TheProfileRunsEverySubjectAtOneAndTwoRanksAndItsRefusals) {
  const MatrixFile file = shipped_matrix_file("subjects", catalogue());
  const Plan plan = make_plan(file, catalogue(), "subjects", kGpus, std::nullopt);
  std::map<std::string, std::set<int>> ranks;
  std::set<std::string> rules;
  for (const record::PlanLine& line : plan.lines) {
    // Expert parallelism together with tensor parallelism of experts needs four ranks, and numbers
    // with a scale for each block another GPU.
    const std::string precision = line.axes.at("precision");
    const bool newer = precision == "mxfp8" || precision == "nvfp4";
    EXPECT_EQ(line.skip ? line.skip->verdict.text() : "", newer            ? "skipped.arch"
                                                          : line.ranks > 2 ? "skipped.gpus"
                                                                           : "")
        << line.name;
    if (line.skip) continue;
    EXPECT_EQ(
        record::plan_line_from(nlohmann::json::parse(record::to_json(line).dump()), "plan.jsonl"),
        line);
    ranks[line.axes.at("subject")].insert(line.ranks);
    if (line.expect.kind != "rejected") continue;
    rules.insert(line.expect.rule);
    EXPECT_FALSE(line.expect.says.empty()) << line.name << " could not pass";
  }
  for (const char* subject : {"torch", "torch_compile", "transformer_engine", "megatron_core"})
    EXPECT_EQ(ranks[subject], (std::set<int>{1, 2})) << subject;
  EXPECT_EQ(ranks["fsdp2"], std::set<int>{2});
  // Each rule whose words are known has a row, and no other rule can have one.
  EXPECT_EQ(rules,
            (std::set<std::string>{"P001", "P002", "P003", "P004", "P005", "P006", "P007", "R071",
                                   "R072", "R073", "R074", "R075", "R078", "R079", "R082", "R094",
                                   "R095", "R096", "R097", "R098", "R099", "R101", "R102", "R116",
                                   "R117", "R118", "R247", "RN25", "RN47"}));
  for (const Rule& rule : catalogue().rules.rules())
    EXPECT_EQ(rules.contains(rule.id), !rule.says.empty()) << rule.id;
}

TEST(SubjectsTest, OtherSubjectsRequireWhatEveryImplementationCanShow) {
  const auto required = [](const char* name) {
    const auto names = catalogue().checks.required(case_of_name(name), "cuda");
    return std::set<std::string>(names.begin(), names.end());
  };
  const std::set<std::string> own = required("impl=manual,dropout=true");
  std::set<std::string> torch = required("subject=torch,impl=manual,dropout=true");
  for (const char* check :
       {"D01.lockstep", "D01.free_run", "D02.eager_repeats", "D03.outputs_written",
        "D04.learning_rate", "D08.generator", "D21.evidence_complete", "D29.idle_when_dropped"})
    EXPECT_TRUE(torch.contains(check)) << check;
  for (const char* name : {"subject=torch,impl=manual", "subject=torch_compile,impl=manual",
                           "subject=torch_compile,impl=callables"})
    EXPECT_TRUE(required(name).contains("D43.replays")) << name;
  EXPECT_FALSE(required("subject=torch,impl=manual,schedule=decode").contains("D04.learning_rate"));
  for (const char* check :
       {"D34.graph_cache", "D38.padding", "D43.shape_buckets", "D48.shape_buckets"})
    EXPECT_TRUE(required("subject=torch,impl=full_iteration,shape_buckets=2").contains(check))
        << check;
  EXPECT_TRUE(own.contains("D15.census"));
  EXPECT_FALSE(torch.contains("D15.census"));
  // PyTorch's Python alone can tell where a step waits for the device.
  EXPECT_EQ(torch.erase("D87.host_waits"), 1u);
  EXPECT_TRUE(std::includes(own.begin(), own.end(), torch.begin(), torch.end()));
  // What the Python of a package recomputes is counted, and not compared.
  const std::set<std::string> recomputing =
      required("subject=megatron_core,impl=local,recompute=selective(mlp)");
  EXPECT_TRUE(recomputing.contains("D42.recompute_captured"));
  EXPECT_FALSE(recomputing.contains("D42.recompute"));
  EXPECT_FALSE(required("impl=local,recompute=selective(mlp)").contains("D42.recompute_captured"));
}

TEST(SubjectsTest, CasesOfDifferentSubjectsShareNoProcess) {
  const auto key = [](const char* name) {
    return batch_key(plan_case(catalogue(), case_of_name(name), kGpus, ""), "cuda");
  };
  EXPECT_NE(key("subject=torch,impl=manual"), key("impl=manual"));
  EXPECT_NE(key("subject=torch,impl=manual"), key("subject=fsdp2,impl=manual"));
  EXPECT_EQ(key("subject=torch,impl=manual"), key("subject=torch,impl=callables"));
  EXPECT_EQ(key("impl=manual").find("subject"), std::string::npos);
}

TEST(SubjectsTest, ATableThatLeavesSomethingOpenIsRefused) {
  const std::string path =
      std::string(std::getenv("GRAPHPROOF_SOURCE")) + "/matrix/tables/subjects.json";
  std::ifstream in(path);
  const std::string shipped{std::istreambuf_iterator<char>(in), {}};
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = shipped;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const Document document = parse_document(text, "subjects.json");
    return thrown([&] { SubjectTable::parse(document, catalogue().axes); }).what;
  };
  EXPECT_EQ(refused("\"fp8_weights\"", "\"dropout\""), "axis `dropout` has two rows");
  EXPECT_EQ(refused("[\"rng_tracker\"]", "[]"), "axis `rng_tracker` means nothing for torch");
  EXPECT_EQ(refused("\"subject\": \"fsdp2\", \"meaning\"", "\"subject\": \"fsdp3\", \"meaning\""),
            "subjects that are not those of the axis");
  EXPECT_EQ(refused("{\"means\": \"GPTModel;", "{\"mean\": \"GPTModel;"), "unknown key `mean`");
  const std::string generators =
      "{\"missing\": \"the subject registers its own generators with its graphs\"}";
  EXPECT_EQ(refused("\"*\": " + generators, "\"*\": {}"),
            "an entry that does not say what the axis means, or why its values are limited");
  EXPECT_EQ(refused("\"of\": {\"*\": " + generators + "}",
                    "\"of\": {\"tensorflow\": {\"means\": \"x\"}}"),
            "unknown subject `tensorflow`");
}

}  // namespace
}  // namespace graphproof::matrix
