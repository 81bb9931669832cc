#include "matrix/plan/matrix_file.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "matrix/cover/model/model.h"
#include "matrix/expression/measured_limit.h"
#include "matrix/expression/syntax.h"

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMaximumExtends = 8;  // files that extend each other
constexpr std::size_t kMaximumMatrix_bytes =
    16 << 20;  // of one file; the largest that we know has a few thousand
constexpr std::size_t kLargestSubset = 12;  // elements of a subset_of, which have 4096 subsets
// Far above any use, and low enough that work for each row, or for each pair, ends soon.
constexpr std::size_t kMostAxes = 1'000, kMostValues = 100'000, kMostDefines = 1'000,
                      kMostConstraints = 10'000, kMostIncluded = 100'000, kMostKnownIssues = 1'000,
                      kMostOracleRules = 1'000, kMostStatedLimits = 1'000, kMostProfiles = 1'000;

/// All names that an expression reads.
void collect_words(const Syntax& syntax, std::set<std::string>& words) {
  if (syntax.kind == SyntaxKind::word) words.insert(syntax.text);
  for (const auto& child : syntax.children) collect_words(*child, words);
}

/// The place of a value, which is computed only if a message needs it.
Origin deferred_place(const Located& value) {
  Origin origin = value.origin();
  origin.in_json_string = false;  // offset 0 is the value itself
  return origin;
}

/// Refuses a list that would take too long to work through.
void bound(const Located& list, std::size_t most, const char* what) {
  if (list.json().size() <= most) return;
  list.fail("too many " + std::string(what), "at most " + std::to_string(most),
            "each of them is evaluated for many cases before anything runs",
            "split the matrix into several files");
}

class Builder {
 public:
  Builder(const Catalogue& catalogue, const FileReader& read) : catalogue_(catalogue), read_(read) {
    file_.scope.axes = &catalogue.axes;
  }

  void add(std::string_view text, const std::string& source) {
    if (text.size() > kMaximumMatrix_bytes)
      throw InputError({.what = "the matrix file is too large",
                        .got = std::to_string(text.size()) + " bytes",
                        .want = "at most " + std::to_string(kMaximumMatrix_bytes) + " bytes",
                        .why = "",
                        .next = "name a matrix file, or split it",
                        .place = {.source = source, .line = 1, .column = 1}});
    const Document document = parse_document(text, source);
    const Located root(document);
    root.expect_keys({"schema"},
                     {"meaning", "extends", "axes", "define", "require", "exclude", "include",
                      "known_issues", "oracle", "perf", "memory", "limits", "profiles"});
    root.at("schema").word({"graphproof-matrix/1"});
    if (root.has("meaning")) root.at("meaning").string();
    chain_.push_back(source);
    if (root.has("extends")) extend(root.at("extends"), source);
    chain_.pop_back();
    file_.source = source;
    hashed_ += text;
    if (root.has("define")) defines(root.at("define"));
    if (root.has("axes")) {
      bound(root.at("axes"), kMostAxes, "axes");
      for (const auto& [name, values] : root.at("axes").members()) axis(name, values);
    }
    order_axes();
    each(root, "require", kMostConstraints, "constraints",
         [&](const Located& row) { require(row); });
    each(root, "exclude", kMostConstraints, "exclusions",
         [&](const Located& row) { exclude(row); });
    each(root, "include", kMostIncluded, "rows", [&](const Located& row) { include(row); });
    each(root, "known_issues", kMostKnownIssues, "known issues",
         [&](const Located& row) { known_issue(row); });
    if (root.has("oracle")) oracle(root.at("oracle"));
    for (const auto& [key, axis] :
         {std::pair{"perf", kLimitAxes[0]}, std::pair{"memory", kLimitAxes[1]}})
      if (root.has(key)) stated_limits(root.at(key), axis);
    if (root.has("limits"))
      for (const auto& [phase, limit] : parse_limits(root.at("limits")))
        file_.limits[phase] = limit;
    if (root.has("profiles")) {
      bound(root.at("profiles"), kMostProfiles, "profiles");
      for (const auto& [name, profile] : root.at("profiles").members())
        file_.profiles[name] = read_profile(name, profile);
    }
  }

  MatrixFile finish() {
    file_.sha256 = sha256_hex(hashed_);
    if (file_.profiles.empty())
      file_.profiles["all"] = {.name = "all",
                               .place = {.source = file_.source, .line = 1, .column = 1}};
    return std::move(file_);
  }

 private:
  template <class Read>
  static void each(const Located& root, const char* key, std::size_t most, const char* what,
                   const Read& read) {
    if (!root.has(key)) return;
    bound(root.at(key), most, what);
    for (const Located& row : root.at(key).items()) read(row);
  }

  // Defines may be in any order, but may not need themselves.
  void defines(const Located& located) {
    bound(located, kMostDefines, "defines");
    std::map<std::string, Located> waiting;
    for (const auto& [name, define] : located.members()) waiting.emplace(name, define);
    std::vector<std::string> chain;
    const std::function<void(const std::string&)> add = [&](const std::string& name) {
      const auto found = waiting.find(name);
      if (found == waiting.end()) return;
      const Located define = found->second;
      if (const auto begin = std::find(chain.begin(), chain.end(), name); begin != chain.end()) {
        std::string circle;
        for (auto one = begin; one != chain.end(); ++one) circle += *one + " -> ";
        define.fail("the define `" + name + "` needs itself",
                    "defines that end at axes and variables", circle + name,
                    "write one of them without the others");
      }
      chain.push_back(name);
      std::set<std::string> words;
      collect_words(*parse_syntax(define.string(), define.origin()), words);
      for (const std::string& word : words) add(word);
      chain.pop_back();
      add_define(file_.scope, name, define.string(), define.origin());
      waiting.erase(name);
    };
    for (const auto& [name, define] : located.members()) add(name);
  }

  void include(const Located& row) {
    Included included{.test_case = case_from_json(catalogue_.axes, row), .named = {}};
    for (const auto& [name, value] : row.members()) included.named.push_back(name);
    file_.include.push_back(std::move(included));
  }

  Expression condition(const Located& text) const {
    return Expression::condition(text.string(), file_.scope, text.origin());
  }

  void extend(const Located& extends, const std::string& source) {
    const std::string name = extends.string();
    const std::string_view shipped = shipped_profile_text(name);
    std::string path = "matrix/profiles/" + name + ".json";
    if (shipped.empty()) {
      if (name.find('/') == std::string::npos && name.find('.') == std::string::npos)
        extends.fail("no shipped profile `" + name + "`",
                     "one of " + listed(shipped_profiles()) + ", or a file", "",
                     suggestion(name, shipped_profiles(), "name a file, such as base.json"));
      const std::size_t folder = source.rfind('/');
      path = (name.starts_with('/') || folder == std::string::npos ? ""
                                                                   : source.substr(0, folder + 1)) +
             name;
    }
    if (std::find(chain_.begin(), chain_.end(), path) != chain_.end() ||
        chain_.size() > kMaximumExtends) {
      std::string circle;
      for (const std::string& one : chain_) circle += one + " -> ";
      extends.fail("files that extend each other without end",
                   "at most " + std::to_string(kMaximumExtends) + " in a chain", circle + path,
                   "remove one `extends`");
    }
    if (shipped.empty())
      add(read_(path), path);
    else
      add(shipped, path);
  }

  void axis(const std::string& name, const Located& located) {
    const Axis& axis = catalogue_.axes.at(name, located.key_place());
    if (name == "fault")
      located.fail("faults do not vary in a product", "profile key \"cases\": \"faults\"",
                   "each fault has a case of its own, in which its detector can see it",
                   "remove the axis");
    VaryingAxis varying{.name = name, .values = {}, .when = std::nullopt};
    std::vector<Located> values;
    bool subset = false;
    if (located.json().is_array()) {
      values = located.items();
    } else if (located.json().is_object()) {
      located.expect_keys({}, {"values", "subset_of", "when", "weight"});
      if (located.has("values") == located.has("subset_of"))
        located.fail("an axis needs either `values` or `subset_of`", "one of them", "",
                     "add or remove one");
      varying.subset = subset = located.has("subset_of");
      values = located.at(subset ? "subset_of" : "values").items();
      if (located.has("when")) varying.when = condition(located.at("when"));
    } else {
      located.fail("an axis without values",
                   "an array of values, or an object with `values` or `subset_of`", "",
                   "write [value, value]");
    }
    if (values.empty())
      located.fail("axis `" + name + "` has no values", "at least one",
                   "a product with it would be empty", "list values, or remove the axis");
    if (values.size() > kMostValues)
      located.fail("too many values of axis `" + name + "`",
                   "at most " + std::to_string(kMostValues), "",
                   "list representatives of each range");
    if (subset) {
      if (axis.type != AxisType::set)
        located.fail("`subset_of` for axis `" + name + "`, which is no set", "a set axis", "",
                     "use `values`");
      if (values.size() > kLargestSubset)
        located.fail("too many elements", "at most " + std::to_string(kLargestSubset),
                     std::to_string(values.size()) + " elements have 2^" +
                         std::to_string(values.size()) + " subsets",
                     "list the wanted sets");
      Json all = Json::array();
      for (const Located& value : values) all.push_back(value.json());
      const auto elements =
          std::get<std::vector<std::string>>(parse_value(axis, name, all, located.place()));
      for (std::size_t mask = 0; mask < (std::size_t{1} << elements.size()); ++mask) {
        std::vector<std::string> chosen;
        for (std::size_t i = 0; i < elements.size(); ++i)
          if ((mask >> i & 1) != 0) chosen.push_back(elements[i]);
        varying.values.emplace_back(std::move(chosen));
        varying.origins.push_back(
            deferred_place(located.json().is_object() ? located.at("subset_of") : located));
      }
    } else {
      std::set<std::string> seen;
      for (const Located& value : values) {
        Value parsed = parse_value(axis, name, value.json(), value.place());
        if (!seen.insert(value_text(parsed)).second)
          value.fail("a value of axis `" + name + "` appears twice", "each value once",
                     "the same cases would run twice", "remove one of them");
        varying.values.push_back(std::move(parsed));
        varying.origins.push_back(deferred_place(value));
      }
    }
    if (located.has("weight")) weigh(varying, located.at("weight"));
    const auto known = std::find_if(file_.axes.begin(), file_.axes.end(),
                                    [&](const VaryingAxis& other) { return other.name == name; });
    if (known == file_.axes.end())
      file_.axes.push_back(std::move(varying));
    else
      *known = std::move(varying);  // an extending file replaces the axis
    if (located.has("when")) when_places_.insert_or_assign(name, located.at("when").place());
  }

  // {"3": 5}: chosen five times as often as a value without a weight.
  static void weigh(VaryingAxis& varying, const Located& weights) {
    std::vector<std::string> names;
    for (const Value& value : varying.values) names.push_back(value_text(value));
    varying.weights.assign(names.size(), 1);
    for (const auto& [name, weight] : weights.members()) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw InputError(
            {.what = "`" + name + "` is no value of axis `" + varying.name + "` in this file",
             .got = name,
             .want = "one of " + listed(names),
             .why = "",
             .next = suggestion(name, names, "list the value, or remove its weight"),
             .place = weight.key_place()});
      varying.weights[static_cast<std::size_t>(found - names.begin())] =
          static_cast<int>(weight.integer(1, 1000));
    }
  }

  // In axis order, names, plans and expansion do not depend on the order in the file. A `when` may
  // read only axes that come before.
  void order_axes() {
    std::sort(file_.axes.begin(), file_.axes.end(),
              [&](const VaryingAxis& a, const VaryingAxis& b) {
                return catalogue_.axes.before(a.name, b.name);
              });
    for (std::size_t i = 0; i < file_.axes.size(); ++i) {
      if (!file_.axes[i].when) continue;
      for (const Input& input : file_.axes[i].when->inputs()) {
        const auto later =
            std::find_if(file_.axes.begin() + static_cast<std::ptrdiff_t>(i), file_.axes.end(),
                         [&](const VaryingAxis& axis) { return axis.name == input.name; });
        if (later == file_.axes.end()) continue;
        throw InputError({.what = "`when` of axis `" + file_.axes[i].name + "` reads `" +
                                  input.name + "`, which comes later",
                          .got = file_.axes[i].when->text(),
                          .want = "axes that come before it in the axis table",
                          .why = "whether an axis is on is decided in axis order",
                          .next = "make the other axis depend on this one, or use `require`",
                          .place = when_places_.count(file_.axes[i].name) != 0
                                       ? when_places_.at(file_.axes[i].name)
                                       : Place{}});
      }
    }
  }

  void add_constraint(Constraint constraint, const Place& place) {
    constraint.place = place;
    if (!constraint_ids_.insert(constraint.id).second ||
        catalogue_.rules.find(constraint.id) != nullptr)
      throw InputError({.what = "the constraint `" + constraint.id + "` appears twice",
                        .got = constraint.id,
                        .want = "an id that no other constraint and no shipped rule has",
                        .why = "reports name constraints by id",
                        .next = "choose another id",
                        .place = place});
    file_.constraints.push_back(std::move(constraint));
  }

  void require(const Located& row) {
    row.expect_keys({"id", "why"}, {"expr", "if", "then", "negative", "as"});
    Constraint constraint{.id = row.at("id").string(), .why = row.at("why").string()};
    if (row.has("expr") == (row.has("if") || row.has("then")))
      row.fail("a constraint needs `expr`, or `if` with `then`", "one of both", "",
               "add or remove one");
    if (row.has("expr")) {
      constraint.require = condition(row.at("expr"));
    } else {
      const Located premise = row.at("if"), conclusion = row.at("then");
      condition(premise);  // checks each half, for the place of a mistake
      condition(conclusion);
      const std::string joined = "(" + premise.string() + ") implies (" + conclusion.string() + ")";
      constraint.require = Expression::condition(
          joined, file_.scope, Origin::option(file_.source + " " + constraint.id, joined));
    }
    if (row.has("negative")) constraint.negative = row.at("negative").boolean();
    if (row.has("as"))
      constraint.skip_as = record::Verdict::from(
          row.at("as").word({"skipped.gpus", "skipped.arch", "skipped.capability"}));
    if (constraint.negative && constraint.skip_as)
      row.fail("`negative` and `as` together", "one of them",
               "a skipped row is allowed, a negative one is forbidden", "remove one");
    add_constraint(std::move(constraint), row.at("id").place());
  }

  // {"arch": "sm_80", "precision": ["fp8_current", "fp8_delayed"]} excludes the rows that have, in
  // every axis that is named, one of the values.
  void exclude(const Located& row) {
    std::string text;
    for (const auto& [name, value] : row.members()) {
      const Axis& axis = catalogue_.axes.at(name, value.key_place());
      const bool several =
          value.json().is_array() && (axis.type != AxisType::set ||
                                      (!value.json().empty() && value.json().front().is_array()));
      const std::vector<Located> values = several ? value.items() : std::vector<Located>{value};
      if (values.empty())
        value.fail("axis `" + name + "` without values", "at least one", "",
                   "list values, or remove the axis");
      std::string either;
      for (const Located& one : values) {
        const nlohmann::json parsed = value_json(parse_value(axis, name, one.json(), one.place()));
        either += (either.empty() ? "" : " or ") + name + " == " + parsed.dump();
      }
      text += (text.empty() ? "" : " and ") + std::string("(") + either + ")";
    }
    if (text.empty())
      row.fail("an empty exclusion", "axes and values", "it would exclude everything",
               "name axes, or remove it");
    text = "not (" + text + ")";
    const std::string id = "exclude." + std::to_string(++excludes_);
    add_constraint({.id = id,
                    .why = "excluded by the matrix file",
                    .require = Expression::condition(
                        text, file_.scope, Origin::option(file_.source + " " + id, text))},
                   row.place());
  }

  void known_issue(const Located& row) {
    row.expect_keys({"id", "expr", "expect", "owner", "until"}, {});
    KnownIssue issue{.id = row.at("id").string(),
                     .expect = row.at("expect").string(),
                     .owner = row.at("owner").string(),
                     .until = row.at("until").string()};
    issue.when = condition(row.at("expr"));
    if (!issue.expect.starts_with("fail."))
      row.at("expect").fail("a known issue that is no failure", "fail.*", "",
                            "write the verdict that is expected, such as fail.hang.replay");
    if (issue.owner.empty())
      row.at("owner").fail("a known issue without an owner", "a person or a team who follows it",
                           "", "name a person or a team");
    const std::string& date = issue.until;
    bool good = date.size() == 10 && date[4] == '-' && date[7] == '-';
    for (const std::size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
      good = good && i < date.size() && date[i] >= '0' && date[i] <= '9';
    good = good && date.substr(5, 2) >= "01" && date.substr(5, 2) <= "12" &&
           date.substr(8, 2) >= "01" && date.substr(8, 2) <= "31";
    if (!good)
      row.at("until").fail("a date that can't be read", "YYYY-MM-DD",
                           "the known issue excuses failures until that day",
                           "write it as 2027-03-01");
    file_.known_issues.push_back(std::move(issue));
  }

  void oracle(const Located& located) {
    located.expect_keys({}, {"default", "rules"});
    if (located.has("default")) located.at("default").word({"bitwise"});
    each(located, "rules", kMostOracleRules, "oracle rules", [&](const Located& row) {
      row.expect_keys({"when", "why"}, {"rtol", "atol", "classes"});
      OracleRule rule{.when = condition(row.at("when")),
                      .tolerances = {},
                      .why = row.at("why").string(),
                      .place = row.place()};
      if (rule.why.empty())
        row.at("why").fail("a tolerance without a reason", "a sentence",
                           "an unnamed difference is a failure",
                           "write why the results may differ");
      Tolerance tolerance;
      if (row.has("rtol")) tolerance.rtol = row.at("rtol").number(0, 1);
      if (row.has("atol")) tolerance.atol = row.at("atol").number(0, 1e6);
      if (tolerance == Tolerance{})
        row.fail("an oracle rule without a tolerance", "`rtol` or `atol` above 0",
                 "without one the arms are compared byte for byte, as every case is",
                 "add `rtol` or `atol`, or remove the rule");
      for (const std::string& name : tensor_classes(row)) rule.tolerances[name] = tolerance;
      file_.oracle.push_back(std::move(rule));
    });
  }

  /// The classes that an oracle rule names; all if it names none.
  static std::vector<std::string> tensor_classes(const Located& row) {
    std::vector<std::string> all, named;
    for (const TensorClass& one : kTensorClasses) all.emplace_back(one.name);
    if (!row.has("classes")) return all;
    for (const Located& name : row.at("classes").items()) {
      named.push_back(name.string());
      if (std::ranges::find(all, named.back()) == all.end())
        name.fail("there is no class of tensors `" + named.back() + "`", listed(all),
                  "a tolerance of a class that does not exist would apply to nothing",
                  suggestion(named.back(), all, "choose one of them"));
    }
    if (named.empty())
      row.at("classes").fail("a list without a class", listed(all),
                             "a tolerance for nothing has no effect",
                             "name a class, or leave out `classes`");
    return named;
  }

  // "graph_step <= 1.02 * eager_step", or a list of {"limit": ..., "when": ...}. An extending file
  // replaces the limits on the same thing.
  void stated_limits(const Located& located, const LimitAxis& axis) {
    std::erase_if(file_.stated_limits,
                  [&](const StatedLimit& known) { return known.axis == axis.axis; });
    const auto add = [&](const Located& text, Expression when) {
      parse_limit(text.string(), text.origin(), axis.quantities, catalogue_.axes);
      file_.stated_limits.push_back(
          {.axis = std::string(axis.axis), .text = text.string(), .when = std::move(when)});
    };
    if (located.json().is_string()) return add(located, Expression::always());
    bound(located, kMostStatedLimits, "limits");
    for (const Located& row : located.items()) {
      row.expect_keys({"limit"}, {"when"});
      add(row.at("limit"), row.has("when") ? condition(row.at("when")) : Expression::always());
    }
  }

  Profile read_profile(const std::string& name, const Located& located) {
    located.expect_keys({}, {"meaning", "cases", "isolation", "where", "seed", "budget", "limits",
                             "cover", "groups", "cost", "steps", "sample"});
    Profile profile{.name = name, .place = located.key_place()};
    if (located.has("cases"))
      profile.cases = located.at("cases").word({"product", "faults", "negative", "recipes"});
    if (located.has("isolation"))
      profile.isolation = located.at("isolation").word({"batch", "process"});
    if (located.has("where")) profile.where = condition(located.at("where"));
    if (located.has("seed"))
      profile.seed = located.at("seed").integer(0, std::numeric_limits<std::int64_t>::max());
    if (located.has("budget")) profile.budget_ms = duration_ms(located.at("budget"));
    if (located.has("limits")) profile.limits = parse_limits(located.at("limits"));
    if (located.has("sample")) profile.sample = located.at("sample").integer(1, 1'000'000);
    if (located.has("cover"))
      profile.cover = read_cover(located);
    else
      for (const char* key : {"groups", "cost", "steps"})
        if (located.has(key))
          located.at(key).fail(std::string("`") + key + "` without `cover`",
                               "a profile that has `cover` too",
                               "the key controls how a covering plan is made", "add \"cover\": 2");
    if (profile.cover && profile.sample > 0)
      located.at("sample").fail("`sample` and `cover` together", "one of them",
                                "`sample` draws rows of the product, `cover` makes rows",
                                "remove one");
    if ((profile.cover || profile.sample > 0) && profile.cases != "product")
      located.at("cases").fail("`cover` and `sample` choose rows of a product",
                               "\"cases\": \"product\"", "", "remove one of them");
    if (located.has("meaning")) located.at("meaning").string();
    return profile;
  }

  CoverRequest read_cover(const Located& profile) {
    CoverRequest cover{
        .strength = static_cast<int>(profile.at("cover").integer(1, cover::kMaxStrength)),
        .groups = {}};
    if (profile.has("groups"))
      for (const Located& row : profile.at("groups").items()) {
        row.expect_keys({"axes", "cover"}, {});
        const bool full = row.at("cover").json() == "full";
        CoverRequest::Group group{
            .axes = {},
            .strength = full ? cover::kMaxStrength
                             : static_cast<int>(row.at("cover").integer(1, cover::kMaxStrength))};
        for (const Located& axis : row.at("axes").items()) {
          catalogue_.axes.at(axis.string(), axis.place());
          if (std::find(group.axes.begin(), group.axes.end(), axis.string()) != group.axes.end())
            axis.fail("an axis twice in a group", "each once", "", "remove one");
          group.axes.push_back(axis.string());
        }
        if (full && group.axes.size() > cover::kMaxStrength)
          row.at("cover").fail("`full` of too many axes",
                               "at most " + std::to_string(cover::kMaxStrength) + " axes",
                               "every combination of their values would be wanted",
                               "make two groups, or ask for a strength");
        if (!full && static_cast<std::size_t>(group.strength) > group.axes.size())
          row.at("cover").fail("a strength above the number of axes",
                               "at most " + std::to_string(group.axes.size()), "",
                               "name more axes, or lower it");
        // An axis that does not vary has one value, which every row has.
        std::erase_if(group.axes, [&](const std::string& name) {
          return std::none_of(file_.axes.begin(), file_.axes.end(),
                              [&](const VaryingAxis& one) { return one.name == name; });
        });
        group.strength = std::min(group.strength, static_cast<int>(group.axes.size()));
        if (!group.axes.empty()) cover.groups.push_back(std::move(group));
      }
    if (profile.has("cost"))
      cover.cost =
          Expression::any(profile.at("cost").string(), file_.scope, profile.at("cost").origin());
    if (profile.has("steps")) cover.steps = profile.at("steps").integer(0, std::int64_t{1} << 40);
    return cover;
  }

  const Catalogue& catalogue_;
  const FileReader& read_;
  MatrixFile file_;
  std::string hashed_;              // the texts of all files
  std::vector<std::string> chain_;  // the file being read and those that extend it
  std::set<std::string> constraint_ids_;
  std::map<std::string, Place> when_places_;
  int excludes_ = 0;
};

}  // namespace

MatrixFile parse_matrix_file(std::string_view text, std::string source, const Catalogue& catalogue,
                             const FileReader& read) {
  Builder builder(catalogue, read);
  builder.add(text, source);
  return builder.finish();
}

MatrixFile shipped_matrix_file(std::string_view profile, const Catalogue& catalogue) {
  const std::string_view text = shipped_profile_text(profile);
  if (text.empty())
    throw InputError(
        {.what = "no profile `" + std::string(profile) + "`",
         .got = std::string(profile),
         .want = "one of " + listed(shipped_profiles()),
         .why = "",
         .next = suggestion(profile, shipped_profiles(), "`graphproof list profiles` shows them"),
         .place = {}});
  return parse_matrix_file(text, "matrix/profiles/" + std::string(profile) + ".json", catalogue,
                           [](const std::string&) { return std::string(); });
}

}  // namespace graphproof::matrix
