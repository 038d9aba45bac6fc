#include "curve.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "vesta/error.h"

namespace gpt {

namespace {

struct Point {
  double step, loss;
};

std::string polyline(const std::vector<Point>& points, const char* colour, double max_step, double lo,
                     double hi) {
  std::ostringstream out;
  out << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"1.5\" points=\"";
  for (auto& p : points)
    out << 60 + 700 * p.step / max_step << "," << 360 - 320 * (p.loss - lo) / (hi - lo) << " ";
  out << "\"/>\n";
  return out.str();
}

}  // namespace

std::string draw_curve(const std::string& dir) {
  std::ifstream in(dir + "/metrics.jsonl");
  std::vector<Point> train, validation;
  for (std::string line; std::getline(in, line);) {
    auto m = nlohmann::json::parse(line, nullptr, false);
    if (m.is_discarded() || !m.contains("step")) continue;
    if (m.contains("loss") && m["loss"].is_number()) train.push_back({m["step"], m["loss"]});
    if (m.contains("val_loss") && m["val_loss"].is_number()) validation.push_back({m["step"], m["val_loss"]});
  }
  double max_step = 1, lo = 1e30, hi = -1e30;
  for (auto* list : {&train, &validation})
    for (auto& p : *list) {
      max_step = std::max(max_step, p.step);
      lo = std::min(lo, p.loss);
      hi = std::max(hi, p.loss);
    }
  if (hi <= lo) lo = hi - 1, hi = hi + 1;
  std::string path = dir + "/loss.svg";
  std::ofstream out(path);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"400\" font-family=\"sans-serif\" "
         "font-size=\"12\">\n"
      << "<rect width=\"800\" height=\"400\" fill=\"white\"/>\n";
  for (int k = 0; k <= 4; ++k) {
    double y = 360 - 80 * k, x = 60 + 175 * k;
    out << "<line x1=\"60\" x2=\"760\" y1=\"" << y << "\" y2=\"" << y
        << "\" stroke=\"#ddd\"/>\n<text x=\"52\" y=\"" << y + 4 << "\" text-anchor=\"end\">"
        << int((lo + (hi - lo) * k / 4) * 100) / 100.0 << "</text>\n<text x=\"" << x
        << "\" y=\"378\" text-anchor=\"middle\">" << int(max_step * k / 4) << "</text>\n";
  }
  out << polyline(train, "#1f77b4", max_step, lo, hi) << polyline(validation, "#d62728", max_step, lo, hi)
      << "<text x=\"410\" y=\"395\" text-anchor=\"middle\">step</text>\n<text x=\"640\" y=\"30\" "
         "fill=\"#1f77b4\">training loss</text>\n"
      << "<text x=\"640\" y=\"46\" fill=\"#d62728\">validation loss</text>\n</svg>\n";
  out.flush();
  VESTA_CHECK_AS(IoError, out, "cannot write ", path);
  return path;
}

}  // namespace gpt
