#include "reports/print/static_page.h"

#include "reports/print/watched_page.h"

namespace graphproof::reports {

std::string static_page(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'\">\n<title>" +
         html_text(title) +
         "</title>\n<style>\n"
         ":root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }\n"
         "body { margin: 1rem auto; max-width: 75rem; padding: 0 1rem; }\n"
         "h1, p { overflow-wrap: anywhere; }\ntd { white-space: nowrap; }\n"
         "div { overflow-x: auto; }\ntable { border-collapse: collapse; }\n"
         "th, td { border-bottom: 1px solid #8886; padding: .2rem .7rem .2rem 0; "
         "text-align: left; }\n"
         "svg { display: block; margin: .5rem 0; }\n"
         "</style>\n</head>\n<body>\n<h1>" +
         html_text(title) + "</h1>\n" + body + "</body>\n</html>\n";
}

std::string html_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div><table>\n<tr>";
  for (const std::string& name : header) out += "<th scope=\"col\">" + html_text(name) + "</th>";
  out += "</tr>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + cell + "</td>";
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace graphproof::reports
