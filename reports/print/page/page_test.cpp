// The page in a real browser: headless Chromium runs it, and the tests look at the resulting
// document, at what it says on its console, and at pictures of it. With GRAPHPROOF_PICTURES=FOLDER
// the pictures stay there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "matrix/expression/expression.h"
#include "reports/print/html.h"
#include "reports/print/packing.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

const matrix::Catalogue& catalogue() {
  static const matrix::Catalogue loaded = matrix::load_catalogue();
  return loaded;
}

/// A grid of two engines, three sizes and two precisions with every kind of verdict, and a hazard.
RunResult run() {
  RunResult result = run_of({});
  result.run.stack.nccl_version = "2.28.9";
  const char* const kVerdicts[] = {"pass",  "fail.numerics", "unexercised", "pass.killed",
                                   "xfail", "pass",          "infra.gpu",   "skipped.gpus"};
  int number = 0;
  for (const char* impl : {"manual", "local"})
    for (const int tp : {1, 2, 4})
      for (const char* precision : {"fp32", "bf16"}) {
        const char* verdict = kVerdicts[number % 8];
        CaseResult one = ended('1', std::string("impl=") + impl + ",tp=" + std::to_string(tp),
                               *record::Verdict::from(verdict), 60);
        char id[17];
        std::snprintf(id, sizeof id, "%016x", static_cast<unsigned>(++number));
        one.plan.id = one.record.case_id = id;
        one.plan.ranks = tp;
        one.plan.axes = {{"impl", impl},
                         {"tp", tp},
                         {"precision", precision},
                         {"nccl_graph_register", number % 2 == 0 ? "0" : "unset"},
                         {"modules", number % 3 == 0 ? nlohmann::json({"attn", "mlp"})
                                                     : nlohmann::json::array()},
                         {"dropout", number % 3 == 1}};
        one.record.seconds = 0.5 * number;
        one.record.figures = {{"eager_step_ms", 10.0 + number},
                              {"graph_step_ms", 2.0},
                              {"graph_nodes", 20.0 * number},
                              {"pool_bytes", 1e6 * number},
                              {"capture_ms", 40}};
        if (one.record.verdict == "xfail"_verdict) {
          one.record.observed = "fail.hang.replay"_verdict;
          one.plan.expect = {.kind = "hazard", .rule = "H01", .verdict = "fail.hang"};
        }
        if (one.record.verdict == "pass.killed"_verdict)
          one.plan.expect = {.kind = "fault", .fault = "M23", .detector = "D04", .clean_twin = id};
        if (one.record.verdict == "fail.numerics"_verdict) {
          one.record.failing[0].message.what =
              "<img src=x onerror=\"document.title='taken'\"> </script>";
          one.record.failing.push_back(
              {.check = "D07.static_addresses", .rank = 0, .message = {.what = "it moved"}});
        }
        result.cases.push_back(one);
      }
  return result;
}

CaseDetail detail_of(const record::Record&) {
  CaseDetail detail;
  detail.series.loss["eager_a"] = {{0, 1, 2}, {4.8, 4.7, 4.6}};
  detail.series.grad_norm["eager_a"] = {{0, 1, 2}, {1.8, 1.7, 1.6}};
  detail.series.difference["lockstep"] = {{0, 1, 2}, {0, 0, 0.5}};
  detail.series.ulp["lockstep"] = {{0, 1, 2}, {0, 0, 4096}};
  detail.series.step_ms["solo_graph"] = {{0, 1, 2, 3, 4}, {2, 2.1, 2.2, 1.9, 2}};
  detail.series.memory["lockstep allocated"] = {{0, 1, 2}, {1e6, 1e6, 1e6}};
  for (int rank = 0; rank < 2; ++rank)
    detail.ranks.push_back(
        {.rank = rank,
         .phases = {{"validate", "", 0, 3, true}, {"replay", "solo_graph", 3, 40, rank == 0}},
         .peak_bytes = {{"allocated", 1000000 + rank}, {"pool", 4096}},
         .log_tail = "NCCL WARN <b>bold</b>"});
  detail.graphs.push_back({.arm = "solo_graph",
                           .graph = "training",
                           .status = "ok",
                           .nodes = 7,
                           .pool_bytes = 4096,
                           .ms = 3.5,
                           .census = {{"kernel", 6}, {"memcpy", 1}}});
  detail.gain = Interval{4.5, 6.5};
  return detail;
}

record::Hazards hazards() {
  record::Hazards all{.run_id = "r", .device = "cuda", .nccl_version = "2.28.9", .cells = {}};
  for (int number : {5, 6})
    all.cells.push_back(
        {.case_id = std::string(15, '0') + std::to_string(number),
         .name = "c",
         .captured = true,
         .collective = number == 5 ? "all_gather" : "all_reduce",
         .allocator = "expandable",
         .nccl_graph_register = "unset",
         .placement = "per_rank",
         .hazard = number == 5 ? "H01" : "H00",
         .basis = "seen",
         .expected = number == 5 ? "fail.hang" : "pass",
         .observed = number == 5 ? "fail.hang.replay"_verdict : "pass"_verdict,
         .verdict = number == 5 ? "xfail"_verdict : "pass"_verdict,
         .registration = "",
         .hang = {},
         .cure = number == 5 ? std::optional(record::HazardCure{.setting = "NCCL_GRAPH_REGISTER=0",
                                                                .case_id = "x",
                                                                .verdict = "pass"_verdict})
                             : std::nullopt,
         .predictions = {{"megatron-lm", "graphs", "R059", number == 5, true}}});
  return all;
}

/// Two earlier runs of the twelve cases of run(): case 1 broke since, case 9 was healed.
CrossRunFacts cross_run() {
  const HistoryResult good{.run_id = "r1"}, bad{.run_id = "r3"};
  CrossRunFacts facts{.unknown = "",
                      .last_run = "r2",
                      .broke = {1},
                      .healed = {9},
                      .stack_changes = {{"NCCL", "2.28.8", "2.28.9"}},
                      .runs = {{"r1", "2026-11-19T10:15:00Z", "0123456789abcdef"},
                               {"r2", "2026-11-20T10:15:00Z", "0123456789abcdef"}},
                      .verdicts = {},
                      .failing = {},
                      .flaky = {}};
  facts.verdicts.resize(12, {"pass"_verdict, "pass"_verdict});
  facts.verdicts[9] = {std::nullopt, "fail.capture"_verdict};
  facts.failing[1] = {.case_id = "",
                      .name = "",
                      .results = {good, bad},
                      .first_bad = bad,
                      .last_good = good,
                      .changed = {{"NCCL", "2.28.8", "2.28.9"}},
                      .suspects = {}};
  facts.flaky[1] = {.failed = 1, .trials = 3, .rate = {0.06, 0.79}};
  return facts;
}

PageFacts facts(const RunResult& result) {
  const std::optional<record::Hazards> known = hazards();
  const CrossRunFacts earlier = cross_run();
  return {
      .catalogue = &catalogue(),
      .hazards = known,
      .overview = overview(
          result, {.catalogue = catalogue(),
                   .hazards = known,
                   .cross_run = earlier,
                   .errors_of = [](const record::Record&) { return std::vector<ErrorFact>(); }}),
      .detail_of = detail_of,
      .span_of =
          [](const record::Record& record) {
            const auto number = static_cast<std::int64_t>(10 * record.seconds);
            return std::optional(AttemptSpan{100 * number, 100 * number + 400});
          },
      .cross_run = earlier};
}

std::string axe() {
  const std::string packed =
      record::read_text(std::filesystem::path(__FILE__).parent_path() / "vendor/axe.min.js.gz");
  return gunzip(packed);
}

struct Visit {
  std::string dom, log;

  /// What the script of the test left: the attribute data-seen.
  std::string seen() const {
    const std::string name = "data-seen=\"";
    const std::size_t at = dom.find(name);
    if (at == std::string::npos) return "nothing; " + log.substr(0, 2000);
    std::string text =
        dom.substr(at + name.size(), dom.find('"', at + name.size()) - at - name.size());
    for (std::size_t amp; (amp = text.find("&quot;")) != std::string::npos;)
      text.replace(amp, 6, "\"");
    for (std::size_t amp; (amp = text.find("&lt;")) != std::string::npos;)
      text.replace(amp, 4, "<");
    for (std::size_t amp; (amp = text.find("&gt;")) != std::string::npos;)
      text.replace(amp, 4, ">");
    for (std::size_t amp; (amp = text.find("&amp;")) != std::string::npos;)
      text.replace(amp, 5, "&");
    return text;
  }
};

/// The page with one more script, which the policy allows by its digest as it does the page's own.
std::string with_script(std::string page, const std::string& script) {
  unsigned char digest[32];
  EVP_Digest(script.data(), script.size(), digest, nullptr, EVP_sha256(), nullptr);
  std::string encoded(45, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()), digest, sizeof digest);
  encoded.resize(44);
  page.insert(page.find("script-src ") + 11, "'sha256-" + encoded + "' ");
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>\n");
  return page;
}

/// Runs Chromium with `options` on the page at `#hash`.
Visit visit(const std::string& page, const std::string& hash, const std::string& options) {
  const record::ScratchFolder folder;
  std::ofstream(folder.path() / "page.html") << page;
  const std::string command =
      "timeout -k 5 90 chromium --headless --no-sandbox --disable-gpu --no-first-run "
      "--enable-logging=stderr --v=0 --user-data-dir=" +
      (folder.path() / "profile").string() + " --virtual-time-budget=20000 " + options +
      " 'file://" + (folder.path() / "page.html").string() + hash + "' >" +
      (folder.path() / "dom").string() + " 2>" + (folder.path() / "log").string();
  if (std::system(command.c_str()) != 0)
    ADD_FAILURE() << "chromium did not open the page; ./graphproof installs it\n"
                  << record::read_text(folder.path() / "log");
  Visit made{record::read_text(folder.path() / "dom"), record::read_text(folder.path() / "log")};
  EXPECT_EQ(made.log.find(":CONSOLE"), std::string::npos)
      << made.log.substr(made.log.find(":CONSOLE"), 500);
  return made;
}

/// A browser that is spoken to through pipes (the DevTools protocol), for what needs a real click:
/// a script's own click may not write to the clipboard. It ends with this object.
class Conversation {
 public:
  explicit Conversation(const std::string& page) {
    std::ofstream(folder_.path() / "page.html") << page;
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) throw std::runtime_error("no pipe");
    browser_ = ::fork();
    if (browser_ == 0) {
      // The browser reads from 3 and writes to 4.
      const int in = ::fcntl(to[0], F_DUPFD, 10), out = ::fcntl(from[1], F_DUPFD, 10);
      ::dup2(in, 3);
      ::dup2(out, 4);
      ::dup2(::open("/dev/null", O_RDWR), 2);
      ::execlp("chromium", "chromium", "--headless", "--no-sandbox", "--disable-gpu",
               "--no-first-run", "--remote-debugging-pipe",
               ("--user-data-dir=" + (folder_.path() / "profile").string()).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
    const nlohmann::json target =
        call("Target.createTarget", {{"url", "file://" + (folder_.path() / "page.html").string()}});
    session_ =
        call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}})
            .at("sessionId");
    wait_for("document.body && document.body.dataset.ready");
  }
  ~Conversation() {
    ::close(to_);  // a browser without its peer ends
    ::close(from_);
    for (int i = 0; i < 100 && ::waitpid(browser_, nullptr, WNOHANG) == 0; ++i) {
      if (i == 50) ::kill(browser_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  nlohmann::json call(const std::string& method, const nlohmann::json& parameters) {
    nlohmann::json message = {{"id", ++last_id_}, {"method", method}, {"params", parameters}};
    if (!session_.empty() && !method.starts_with("Browser.")) message["sessionId"] = session_;
    const std::string text = message.dump();
    if (::write(to_, text.c_str(), text.size() + 1) < 0) throw std::runtime_error("no browser");
    for (;;) {
      const nlohmann::json answer = nlohmann::json::parse(next_message());
      if (answer.value("id", 0) != last_id_) continue;  // an event
      if (answer.contains("error")) throw std::runtime_error(answer.dump());
      return answer.at("result");
    }
  }
  /// The value of an expression in the page; of a promise what it becomes.
  nlohmann::json evaluate(const std::string& expression) {
    const nlohmann::json answer =
        call("Runtime.evaluate",
             {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    return answer.at("result").value("value", nlohmann::json(answer.dump()));
  }
  /// Until the expression is true in the page; throws after half a minute.
  void wait_for(const std::string& condition) {
    for (int i = 0; i < 600; ++i) {
      if (evaluate("!!(" + condition + ")") == true) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    throw std::runtime_error("the page never gets to " + condition);
  }
  /// Clicks at the middle of the element.
  void click(const std::string& selector) {
    const nlohmann::json at = nlohmann::json::parse(
        evaluate("(() => { const box = document.querySelector(" + nlohmann::json(selector).dump() +
                 ").getBoundingClientRect(); return JSON.stringify({x: box.x + box.width / 2, "
                 "y: box.y + box.height / 2}); })()")
            .get<std::string>());
    for (const char* type : {"mousePressed", "mouseReleased"})
      call("Input.dispatchMouseEvent",
           {{"type", type}, {"x", at["x"]}, {"y", at["y"]}, {"button", "left"}, {"clickCount", 1}});
  }

 private:
  std::string next_message() {
    for (;;) {
      if (const std::size_t end = read_.find('\0'); end != std::string::npos) {
        const std::string message = read_.substr(0, end);
        read_.erase(0, end + 1);
        return message;
      }
      pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
      char part[4096];
      const ssize_t got =
          ::poll(&ready, 1, 60'000) == 1 ? ::read(from_, part, sizeof part) : ssize_t{-1};
      if (got <= 0) throw std::runtime_error("chromium does not answer; ./graphproof installs it");
      read_.append(part, static_cast<std::size_t>(got));
    }
  }

  const record::ScratchFolder folder_;
  pid_t browser_ = -1;
  int to_ = -1, from_ = -1, last_id_ = 0;
  std::string session_, read_;
};

/// What `body` returns, run in the page once it is ready; `body` may await.
std::string asked(const RunResult& result, const std::string& hash, const std::string& body) {
  const std::string script = "async function ask() {\n" + body + R"(
    }
    const pause = ms => new Promise(done => setTimeout(done, ms));
    const count = selector => document.querySelectorAll(selector).length;
    const text = selector => document.querySelector(selector).textContent;
    (async () => {
      while (!document.body.dataset.ready) await pause(20);
      document.body.dataset.seen = JSON.stringify(await ask().catch(error => error.stack));
    })();)";
  return visit(with_script(html(result, facts(result)), script), hash,
               "--dump-dom --window-size=1280,720")
      .seen();
}

TEST(Page, TheFirstScreenSaysVerdictCauseAndCure) {
  EXPECT_EQ(asked(run(), "", R"(
    const bottom = node => node.getBoundingClientRect().bottom;
    const cures = [...document.querySelectorAll('#overview .cure')];
    return [text('.verdict h1').trim(), count('#overview .group'),
            text('#overview .kind-expected .cure code'),
            bottom(document.querySelector('.verdict')) < 200,
            [...document.querySelectorAll('.side h2')].map(node => node.textContent).join()];)"),
            "[\"\xE2\x9C\x95 Not acceptable\",4,\"NCCL_GRAPH_REGISTER=0\",true,"
            "\"New,Coverage,Run\"]");
}

TEST(Page, FiltersSortsAndChoosesColumnsAndTheAddressHoldsIt) {
  EXPECT_EQ(asked(run(), "#filter=tp+%3E%3D+2+and+impl+%3D%3D+local&sort=-seconds&columns=case,tp",
                  R"(
    const rows = () => [...document.querySelectorAll('.grid-body [role=row]')];
    const found = [text('#counted'), rows().length, rows()[0].textContent,
                   count('.grid-head [role=columnheader]')];
    const filter = document.getElementById('filter');
    filter.value = 'tp == 4 and "attn" in modules';
    filter.dispatchEvent(new Event('input'));
    await pause(300);
    found.push(text('#counted'), decodeURIComponent(location.hash).includes('attn'));
    filter.value = 'tp = 4';
    filter.dispatchEvent(new Event('input'));
    await pause(300);
    found.push(text('#filter-mistake'));
    return found;)"),
            "[\"4 of 12 cases\",4,\"impl=local,tp=44\",2,\"2 of 12 cases\",true,"
            "\"this sign is not part of the language: = 4\"]");
}

TEST(Page, TheFilterIsTheProductsOwnLanguage) {
  const RunResult result = run();
  const std::vector<std::string> expressions = {
      "tp >= 2",
      "impl in {local, manual} and not dropout",
      "nccl_graph_register == \"0\"",
      "tp == 4 implies precision == bf16",
      "attn in modules",
      "len(modules) == 0 or tp * 2 > 4",
      "divides(2, tp) and tp % 4 != 0",
      "modules == {attn, mlp}",
      "subset(modules, {attn}) and (dropout or tp / 2 == 1)",
      "max(tp, 3) == 3 and -tp < 0",
      "overlaps(modules, {mlp, attn})",
      "impl != local and precision in {fp32}"};
  const matrix::Scope scope{.axes = &catalogue().axes, .defines = {}};
  std::string want = "[";
  for (const std::string& expression : expressions) {
    const auto condition = matrix::Expression::condition(
        expression, scope, matrix::Origin::option("filter", expression));
    std::string letters;
    for (const CaseResult& one : result.cases) {
      nlohmann::json axes = one.plan.axes;
      const matrix::Case made = matrix::case_from_json(catalogue().axes, axes, "test");
      letters += condition.holds(made, {}) == matrix::Truth::yes ? '1' : '0';
    }
    EXPECT_NE(letters.find('1'), std::string::npos) << expression;
    EXPECT_NE(letters.find('0'), std::string::npos) << expression;
    want += (want.size() > 1 ? ",\"" : "\"") + letters + "\"";
  }
  EXPECT_EQ(asked(result, "",
                  "return " + nlohmann::json(expressions).dump() +
                      ".map(one => data.all.map(index => compileFilter(one)(index) ? 1 : 0)"
                      ".join(''));"),
            want + "]");
}

TEST(Page, TheKeyboardOpensACaseAndComesBack) {
  EXPECT_EQ(asked(run(), "#part=cases", R"(
    const press = (node, key) => node.dispatchEvent(
      new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
    press(document.body, '/');
    const found = [document.activeElement.id];
    const grid = document.getElementById('cases-grid');
    grid.focus();
    press(grid, 'End');
    found.push(grid.getAttribute('aria-activedescendant'));
    press(grid, 'Home');
    press(grid, 'ArrowDown');
    press(grid, 'Enter');
    await pause(500);
    found.push(document.body.dataset.shown);
    press(document.body, 'Escape');
    await pause(300);
    found.push(document.body.dataset.shown, document.getElementById('case').hidden);
    return found;)"),
            "[\"filter\",\"row-11\",\"000000000000000a\",\"run\",true]");
}

TEST(Page, EveryPlotOfTheRunHasPixels) {
  EXPECT_EQ(asked(run(), "", R"(
    document.getElementById('draw-loss').click();
    await pause(300);
    for (const node of document.querySelectorAll('.plot')) await draw(node);
    await pause(300);
    const painted = canvas => new Set(canvas.getContext('2d')
      .getImageData(0, 0, canvas.width, canvas.height).data).size > 4;
    const canvases = [...document.querySelectorAll('#run .plot canvas')];
    return [count('#run .plot'), canvases.length, canvases.filter(painted).length,
            ...['#map .heat', '#faults', '#hazards'].map(id => count(id + ' tbody tr'))];)"),
            "[4,4,4,2,2,3]");
}

TEST(Page, TheBenefitIsGroupedByAxis) {
  EXPECT_EQ(asked(run(), "",
                  "return [text('.by-axis summary'), text('.by-axis thead'), "
                  "count('.by-axis tbody tr') >= 4];"),
            R"(["by axis and value","axisvaluecasestimesfromtoextra memory",true])");
}

TEST(Page, PlotsThatNeverCameIntoViewArePrinted) {
  EXPECT_EQ(asked(run(), "", R"(
    await echartsReady();
    const undrawn = () => [...document.querySelectorAll('#run .plot')]
      .filter(node => !node.dataset.drawn).length;
    const before = undrawn();
    dispatchEvent(new Event('beforeprint'));  // what returns from it is what is printed
    const painted = canvas => new Set(canvas.getContext('2d')
      .getImageData(0, 0, canvas.width, canvas.height).data).size > 4;
    return [before > 1, undrawn(),
            [...document.querySelectorAll('#run .plot canvas')].filter(painted).length];)"),
            "[true,0,3]");
  const record::ScratchFolder folder;
  const std::filesystem::path file = folder.path() / "page.pdf";
  visit(html(run(), facts(run())), "", "--window-size=1280,720 --print-to-pdf=" + file.string());
  const std::string printed = record::read_text(file), words = "/Subtype /Image";
  int images = 0;
  for (std::size_t at = printed.find(words); at != std::string::npos;
       at = printed.find(words, at + 1))
    ++images;
  EXPECT_GE(images, 3) << "a canvas becomes an image";
}

TEST(Page, ACaseShowsWhyWhatToRunAndItsArms) {
  const std::string seen = asked(run(), "#case=0000000000000002", R"(
    await pause(300);
    for (const node of document.querySelectorAll('#case .plot')) await draw(node);
    await pause(300);
    const painted = canvas => new Set(canvas.getContext('2d')
      .getImageData(0, 0, canvas.width, canvas.height).data).size > 4;
    return [text('.reason code'), count('#case img'),
            [...document.querySelectorAll('#case .plot canvas')].filter(painted).length,
            text('.causes li p'), count('.causes .fired'), text('#case pre'),
            document.title, /[{}]/.test(text('#case'))];)");
  EXPECT_EQ(seen,
            "[\"./graphproof repro 20261121-101500-3f2a/0000000000000002\",0,8,"
            "\"D07.static_addresses failed: an input was replaced instead of copied into, or a "
            "weight was rebound\",1,\"NCCL WARN <b>bold</b>\",\"fail.numerics impl=manual,tp=1\","
            "false]")
      << "one plot for each of eight; no markup of a rank became part of the page; no raw JSON";
}

TEST(Page, ACopyButtonCopiesTheLineNextToIt) {
  Conversation browser(html(run(), facts(run())));
  browser.evaluate("location.hash = '#case=0000000000000002'");
  browser.wait_for("document.body.dataset.shown === '0000000000000002'");
  browser.click(".reason .copy");
  browser.wait_for("document.querySelector('.reason .copy').textContent !== 'copy'");
  EXPECT_EQ(browser.evaluate("document.querySelector('.reason .copy').textContent"), "copied");
  EXPECT_EQ(browser.evaluate("document.getElementById('spoken').textContent"), "copied");
  browser.call("Browser.grantPermissions",
               {{"permissions", {"clipboardReadWrite", "clipboardSanitizedWrite"}}});
  EXPECT_EQ(browser.evaluate("navigator.clipboard.readText()"),
            "./graphproof repro 20261121-101500-3f2a/0000000000000002");
}

TEST(Page, SaysWhatIsNewAndWhatEarlierRunsSaidOfACase) {
  EXPECT_EQ(asked(run(), "", R"(
    const news = text('.side').split('Coverage')[0];
    location.hash = '#case=0000000000000002';
    await pause(500);
    const rows = () => [...document.querySelectorAll('#earlier tbody tr')]
      .map(row => [...row.children].map(cell => cell.textContent).join(' '));
    const said = [...document.querySelectorAll('#earlier p')].map(one => one.textContent);
    const found = [news, said, rows()];
    location.hash = '#case=000000000000000a';
    await pause(500);
    return [...found, rows()];)"),
            "[\"Newsince run r2\xE2\x9C\x95 1 case brokeimpl=manual,tp=1\xE2\x9C\x93 1 case "
            "healedimpl=local,tp=2NCCL 2.28.8 -> 2.28.9\","
            "[\"It fails since this run; the last good run was r1. Between the two "
            "changed NCCL 2.28.8 -> 2.28.9.\",\"It failed in 1 of 3 runs on this stack (95 % "
            "interval of the rate: 6 to 79 %).\"],"
            "[\"2026-11-20T10:15:00Z r2 01234567 pass\",\"2026-11-19T10:15:00Z r1 01234567 "
            "pass\"],[\"2026-11-20T10:15:00Z r2 01234567 fail.capture\"]]");
}

TEST(Page, AxeFindsNothingSerious) {
  const std::string check = axe() + R"(
    const pause = ms => new Promise(done => setTimeout(done, ms));
    (async () => {
      while (!document.body.dataset.ready) await pause(20);
      await pause(200);
      const found = await axe.run(document, {resultTypes: ['violations']});
      document.body.dataset.seen = JSON.stringify(found.violations
        .filter(one => ['serious', 'critical'].includes(one.impact))
        .map(one => one.id + ': ' + one.nodes.map(node => node.target + ' ' + node.failureSummary)
          .slice(0, 3).join('; ')));
    })();)";
  const std::string page = with_script(html(run(), facts(run())), check);
  for (const char* theme : {"", " --blink-settings=preferredColorScheme=0"})
    for (const char* hash : {"", "#case=0000000000000002"})
      EXPECT_EQ(visit(page, hash, std::string("--dump-dom --window-size=1280,720") + theme).seen(),
                "[]")
          << theme << hash;
}

TEST(Page, PicturesInTwoWidthsAndThemesAreNotBlank) {
  const char* kept = std::getenv("GRAPHPROOF_PICTURES");
  const record::ScratchFolder scratch;
  const std::filesystem::path folder = kept != nullptr ? kept : scratch.path();
  std::filesystem::create_directories(folder);
  const std::string page = html(run(), facts(run()));
  std::vector<std::string> pictures;
  for (const char* theme : {"light", "dark"})
    for (const char* size : {"1280,720", "360,740"})
      for (const char* hash : {"", "#case=0000000000000002"}) {
        const std::filesystem::path file =
            folder / (std::string(theme) + "-" + std::to_string(std::atoi(size)) +
                      (*hash != '\0' ? "-case.png" : ".png"));
        const std::string dark =
            theme == std::string("dark") ? " --blink-settings=preferredColorScheme=0" : "";
        visit(page, hash,
              "--hide-scrollbars --screenshot=" + file.string() + " --window-size=" + size + dark);
        // A blank picture of these sizes compresses to less than 5 KB.
        EXPECT_GT(std::filesystem::file_size(file), 15u * 1024) << file;
        pictures.push_back(record::read_text(file));
      }
  EXPECT_NE(pictures[0], pictures[4]) << "the themes differ";
}

TEST(Page, AtThreeHundredAndSixtyPixelsNothingIsWiderThanThePage) {
  // A window of Chromium is at least 500 pixels wide; a frame is as narrow as it is told to be.
  const std::string page = with_script(html(run(), facts(run())), R"(
    const pause = ms => new Promise(done => setTimeout(done, ms));
    (async () => {
      while (!document.body.dataset.ready) await pause(20);
      document.body.style.width = '360px';
      await pause(200);
      const wide = [...document.querySelectorAll('main section, main article, .verdict, .tools')]
        .filter(node => node.getBoundingClientRect().right > 361)
        .map(node => node.id || node.className);
      document.body.dataset.seen = JSON.stringify(wide);
    })();)");
  EXPECT_EQ(visit(page, "", "--dump-dom --window-size=500,740").seen(), "[]");
}

/// 10,000 cases over as many axes as real ones have.
RunResult large_run() {
  RunResult result = run_of({});
  for (int i = 0; i < 10000; ++i) {
    const bool fails = i % 250 == 7;
    CaseResult one = ended('1', "impl=local,case=" + std::to_string(i),
                           fails ? "fail.numerics"_verdict : "pass"_verdict, fails ? 60 : 90);
    char id[17];
    std::snprintf(id, sizeof id, "%016x", static_cast<unsigned>(i * 7919));
    one.plan.id = one.record.case_id = id;
    one.plan.axes = nlohmann::json::object();
    for (int axis = 0; axis < 40; ++axis)
      one.plan.axes["axis_" + std::to_string(axis)] = (i / (axis + 1)) % (2 + axis % 5);
    one.plan.axes["impl"] = fails ? "manual" : "local";
    for (int check = 0; check < 60; ++check)
      one.checks["D" + std::to_string(10 + check) + ".check"] = record::Result::pass;
    one.record.seconds = 0.01 * (i % 997);
    one.record.figures = {{"eager_step_ms", 10.0 + i % 13}, {"graph_step_ms", 2.0 + i % 3}};
    result.cases.push_back(one);
  }
  return result;
}

TEST(Page, OfTenThousandCasesFewRowsAreInTheDocument) {
  EXPECT_EQ(asked(large_run(), "",
                  "return [count('.grid-body [role=row]') < 100, data.count, text('.where')];"),
            "[true,10000,\"impl == manualall 40 such cases, 0 of 9960 others\"]");
}

TEST(Page, OfTenThousandCasesIsReadySoon) {
  // In real time, so the browser runs until it is ended. docs/benchmarks/report-page.md has the
  // time on a quiet machine; tests share theirs with others.
  const record::ScratchFolder folder;
  const RunResult large = large_run();
  std::ofstream(folder.path() / "page.html") << html(large, facts(large));
  const std::string command =
      "timeout 10 chromium --headless --no-sandbox --disable-gpu --no-first-run "
      "--enable-logging=stderr --v=0 --user-data-dir=" +
      (folder.path() / "profile").string() + " 'file://" + (folder.path() / "page.html").string() +
      "#timed=1' 2>" + (folder.path() / "log").string();
  static_cast<void>(std::system(command.c_str()));
  const std::string log = record::read_text(folder.path() / "log"), words = "ready after ";
  const std::size_t at = log.find(words);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_LT(std::atoi(log.c_str() + at + words.size()), 6000);
}

}  // namespace
}  // namespace graphproof::reports
