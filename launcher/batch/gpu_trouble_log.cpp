#include "launcher/batch/gpu_trouble_log.h"

#include <fstream>

namespace graphproof::launcher {

void GpuTroubleLog::start() {
  if (health_) seen_ = health_->count();
}

void GpuTroubleLog::step(std::int64_t now_ms, std::vector<record::Context>& finished) {
  if (health_ == nullptr || gpus_.empty()) return;
  // The driver is asked in any case before a context is handed out.
  health_->look(now_ms, !finished.empty());
  for (const GpuTrouble& trouble : health_->since(seen_, gpus_)) {
    const std::string text = "GPU " + trouble.gpu + ": " + trouble.what;
    std::ofstream(file_, std::ios::app) << text << "\n";
    if (trouble.hardware) hardware_.insert(text);
  }
  seen_ = health_->count();
  if (finished.empty() || hardware_.empty()) return;
  std::string why;
  for (const std::string& text : hardware_) why += (why.empty() ? "" : "; ") + text;
  hardware_.clear();
  for (record::Context& context : finished)
    if (!context.infra) context.infra = record::Infra{"gpu", why};
}

}  // namespace graphproof::launcher
