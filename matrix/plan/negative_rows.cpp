#include "matrix/plan/negative_rows.h"

#include <algorithm>
#include <optional>
#include <set>

#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/product.h"
#include "matrix/plan/matrix_model.h"
#include "matrix/plan/row_truth.h"

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMostBroken =
    4;  // constraints that a row may break; with more it tests none of them
constexpr std::size_t kMostRows = 10'000;  // of one constraint

class NegativeMaker {
 public:
  NegativeMaker(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine)
      : file_(file),
        catalogue_(catalogue),
        machine_(machine),
        legal_(matrix_model(file, catalogue, machine, std::nullopt, Extent::legal)) {}

  NegativeRows run() {
    for (const Constraint& constraint : file_.constraints)
      if (constraint.negative) add(constraint);
    return std::move(result_);
  }

 private:
  void add(const Constraint& constraint) {
    const auto own =
        std::find_if(legal_.model.constraints.begin(), legal_.model.constraints.end(),
                     [&](const cover::Constraint& one) { return one.id == constraint.id; });
    if (own == legal_.model.constraints.end()) {
      result_.not_isolated.push_back(constraint.id + ": no row breaks it");
      return;
    }
    const std::set<int> alone{static_cast<int>(own - legal_.model.constraints.begin())};
    const std::optional<std::set<int>> broken_together = fewest(constraint, alone);
    if (!broken_together) {
      result_.not_isolated.push_back(constraint.id + ": no row breaks it with fewer than " +
                                     std::to_string(kMostBroken) + " others");
      return;
    }
    if (broken_together->size() > 1) {
      std::vector<std::string> others;
      for (const int index : *broken_together)
        if (!alone.contains(index)) others.push_back(id(index));
      result_.not_isolated.push_back(constraint.id + ": breaks only together with " +
                                     listed(others));
    }
    rows(constraint, *broken_together);
  }

  /// The fewest constraints, `own` among them, without which some row breaks `own`; of several such
  /// sets the first in source order. The oracle names constraints that together forbid the break,
  /// which shows which of them to leave out.
  std::optional<std::set<int>> fewest(const Constraint& constraint,
                                      const std::set<int>& own) const {
    std::set<std::set<int>> level{own};
    for (std::size_t together = 1; together <= kMostBroken && !level.empty(); ++together) {
      std::set<std::set<int>> possible, next;
      for (const std::set<int>& without : level) {
        cover::Model model = relaxed(without);
        model.constraints.push_back(broken(constraint, file_, machine_));
        cover::Oracle oracle(model);
        if (oracle.solve({})) {
          possible.insert(without);
          continue;
        }
        for (const int index : oracle.reason({})) {
          if (index + 1 == static_cast<int>(model.constraints.size())) continue;
          const int original = original_index(index, without);
          if (original < static_cast<int>(legal_.switches))
            continue;  // a row can't break whether an axis is on
          std::set<int> more = without;
          more.insert(original);
          next.insert(std::move(more));
        }
      }
      if (!possible.empty()) return *possible.begin();
      level = std::move(next);
    }
    return std::nullopt;
  }

  cover::Model relaxed(const std::set<int>& without) const {
    cover::Model model = legal_.model;
    for (auto index = without.rbegin(); index != without.rend(); ++index)
      model.constraints.erase(model.constraints.begin() + *index);
    return model;
  }

  static int original_index(int index, const std::set<int>& without) {
    for (const int left_out : without)
      if (left_out <= index) ++index;
    return index;
  }

  const std::string& id(int index) const {
    return legal_.model.constraints[static_cast<std::size_t>(index)].id;
  }

  void rows(const Constraint& constraint, const std::set<int>& broken_together) {
    const cover::Model model = relaxed(broken_together);
    const cover::Product product(model);
    std::vector<std::string> breaks;
    for (const int index : broken_together) breaks.push_back(id(index));

    const RowTruth holds = condition_truth(constraint.require, file_.axes, machine_);
    States states(file_.axes.size(), 0);
    std::size_t made = 0, left_out = 0;
    while (true) {
      if (holds.of(states) == Truth::no) {
        cover::Cells cells;
        for (const std::size_t axis : holds.reads())
          cells.push_back({static_cast<int>(axis), static_cast<int>(states[axis])});
        if (const std::optional<cover::Row> row = product.first(cells)) {
          if (++made > kMostRows)
            ++left_out;
          else
            result_.rows.push_back(
                {case_of(states_of(*row), file_.axes, catalogue_.axes), breaks.front(), breaks});
        }
      }
      std::size_t at = holds.reads().size();
      while (at > 0 &&
             ++states[holds.reads()[at - 1]] == state_count(file_.axes[holds.reads()[at - 1]]))
        states[holds.reads()[--at]] = 0;
      if (at == 0) break;
    }
    if (left_out > 0)
      result_.not_isolated.push_back(constraint.id + ": " + std::to_string(left_out) +
                                     " more of its combinations are left out");
  }

  const MatrixFile& file_;
  const Catalogue& catalogue_;
  const Machine& machine_;
  const MatrixModel legal_;
  NegativeRows result_;
};

}  // namespace

NegativeRows negative_rows(const MatrixFile& file, const Catalogue& catalogue,
                           const Machine& machine) {
  if (std::none_of(file.constraints.begin(), file.constraints.end(),
                   [](const Constraint& constraint) { return constraint.negative; }))
    return {};
  return NegativeMaker(file, catalogue, machine).run();
}

}  // namespace graphproof::matrix
