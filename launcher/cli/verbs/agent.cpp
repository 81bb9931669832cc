// agent: serves a launcher on a node of a cluster. It is started by srun, sbatch or mpirun, never
// by hand.
#include "launcher/cluster/agent.h"

#include <memory>

#include "launcher/cli/verb.h"

namespace graphproof::cli {

Action declare_agent(CLI::App& app) {
  const auto setup = std::make_shared<cluster::AgentSetup>();
  app.add_option("--run", setup->run_folder, "the folder of the run")->required();
  app.add_option("--channels", setup->channels, "the folder of the agents' channels")->required();
  app.add_option("--slots", setup->slots, "the slots of this node")->required();
  app.add_option("--rank-program", setup->rank_program, "the program of the ranks")->required();
  return [setup](Surroundings&) {
    return cluster::serve(*setup, launcher::own_environment()) == 0 ? record::ExitCode::ok
                                                                    : record::ExitCode::interrupted;
  };
}

}  // namespace graphproof::cli
