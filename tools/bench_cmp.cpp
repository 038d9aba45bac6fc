// bench_cmp BEFORE AFTER [--noise PERCENT] [--fail]: compares two files of bench results (JSON lines with bench,
// case, value, unit, and ratio, lo, hi) and prints the cases that changed by more than their noise. The noise of a
// case is the half width of its ratio's 90 % interval, or the spread of its values where a file has it several
// times, or --noise (5); both files' noise is added, and below 2 % nothing is reported.
// --fail: exit status 1 if a case got worse. Reads flat JSON objects only, the form benches print.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using Row = std::map<std::string, std::string>;

struct Case {
  std::vector<double> values;
  std::string unit;
  double noise = -1;  // relative; below 0: not known
};

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "bench_cmp: %s\n", message.c_str());
  std::exit(2);
}

// {"a": "text", "b": 1.5, "c": null} to text values; false if the line is anything else.
bool parse_row(const std::string& line, Row* row) {
  size_t i = 0;
  auto skip = [&] {
    while (i < line.size() && std::isspace(static_cast<unsigned char>(line[i]))) ++i;
  };
  auto take = [&](char c) {
    skip();
    return i < line.size() && line[i] == c && ++i;
  };
  auto text = [&](std::string* out) {
    for (out->clear(); i < line.size() && line[i] != '"'; ++i) {
      if (line[i] == '\\' && ++i == line.size()) return false;
      *out += line[i];
    }
    return i < line.size() && line[i++] == '"';
  };
  if (!take('{')) return false;
  if (take('}')) return true;
  do {
    std::string key, value;
    if (!take('"') || !text(&key) || !take(':')) return false;
    if (take('"')) {
      if (!text(&value)) return false;
    } else {
      skip();
      while (i < line.size() && !std::strchr(",} \t", line[i])) value += line[i++];
      if (value.empty()) return false;
    }
    (*row)[key] = value;
  } while (take(','));
  if (!take('}')) return false;
  skip();
  return i == line.size();
}

bool number(const Row& row, const char* key, double* out) {
  auto it = row.find(key);
  if (it == row.end() || it->second.empty()) return false;
  char* end = nullptr;
  *out = std::strtod(it->second.c_str(), &end);
  return !*end && std::isfinite(*out);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::map<std::string, Case> read_results(const char* path) {
  std::ifstream in(path);
  if (!in) die(std::string("cannot read ") + path);
  std::map<std::string, Case> cases;
  std::string line;
  for (int n = 1; std::getline(in, line); ++n) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Row row;
    double value, ratio, lo, hi;
    if (!parse_row(line, &row) || !row.count("bench") || !row.count("case") ||
        !number(row, "value", &value)) {
      die(std::string(path) + ":" + std::to_string(n) + ": not a bench result with bench, case and value");
    }
    Case& c = cases[row["bench"] + " " + row["case"]];
    c.values.push_back(value);
    c.unit = row["unit"];
    if (number(row, "ratio", &ratio) && number(row, "lo", &lo) && number(row, "hi", &hi) && ratio > 0) {
      c.noise = std::max(c.noise, (hi - lo) / 2 / ratio);
    }
  }
  for (auto& [name, c] : cases) {
    auto [low, high] = std::minmax_element(c.values.begin(), c.values.end());
    double middle = std::abs(median(c.values));
    if (c.values.size() > 1 && middle > 0) c.noise = std::max(c.noise, (*high - *low) / 2 / middle);
  }
  return cases;
}

// Rates (tokens/s, GFLOP/s) are better when higher; times, bytes and counts when lower.
bool higher_is_better(const std::string& unit) { return unit.ends_with("/s"); }

}  // namespace

int main(int argc, char** argv) {
  std::vector<const char*> paths;
  double noise = 0.05;
  bool fail = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--fail")) {
      fail = true;
    } else if (!std::strcmp(argv[i], "--noise") && i + 1 < argc) {
      noise = std::atof(argv[++i]) / 100;
    } else if (argv[i][0] == '-') {
      die(std::string("unknown option ") + argv[i]);
    } else {
      paths.push_back(argv[i]);
    }
  }
  if (paths.size() != 2) die("usage: bench_cmp BEFORE AFTER [--noise PERCENT] [--fail]");
  auto before = read_results(paths[0]), after = read_results(paths[1]);
  int same = 0, better = 0, worse = 0;
  for (const auto& [name, a] : before) {
    auto found = after.find(name);
    if (found == after.end()) {
      std::printf("%-40s missing in %s\n", name.c_str(), paths[1]);
      continue;
    }
    const Case& b = found->second;
    if (a.unit != b.unit) die(name + ": the unit changed from " + a.unit + " to " + b.unit);
    double va = median(a.values), vb = median(b.values);
    double limit = std::max(0.02, (a.noise < 0 ? noise : a.noise) + (b.noise < 0 ? noise : b.noise));
    double change = va == 0 ? (vb == 0 ? 0 : INFINITY) : vb / va - 1;
    if (std::abs(change) <= limit) {
      ++same;
      continue;
    }
    bool is_better = (change > 0) == higher_is_better(a.unit);
    ++(is_better ? better : worse);
    std::printf("%-40s %10.4g -> %10.4g %-8s %+6.1f %% (noise %.1f %%)  %s\n", name.c_str(), va, vb,
                a.unit.c_str(), change * 100, limit * 100, is_better ? "better" : "WORSE");
  }
  for (const auto& [name, b] : after) {
    if (!before.count(name)) std::printf("%-40s new\n", name.c_str());
  }
  std::printf("%d better, %d worse, %d within noise\n", better, worse, same);
  return fail && worse ? 1 : 0;
}
