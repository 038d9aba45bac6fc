// buildtime BUILD_DIR [SUBSTRING]: what the last build of each output cost, from BUILD_DIR/.ninja_log: wall time of
// the longest run (a cold build, if there was one), processor seconds, and the ten slowest outputs. With SUBSTRING
// only outputs whose path contains it, all of them: "headers/public" shows what each public header costs.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Entry {
  long start_ms, end_ms;
  std::string output;
};

// Lines are appended in order of finishing, and the clock starts again with each run of ninja.
std::vector<Entry> read_log(std::istream& in, long* longest_run_ms) {
  std::map<std::string, Entry> last;
  std::string line;
  long previous_end = 0;
  *longest_run_ms = 0;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    Entry entry;
    long mtime;
    if (!(fields >> entry.start_ms >> entry.end_ms >> mtime >> entry.output)) continue;
    if (entry.end_ms < previous_end) previous_end = 0;
    previous_end = entry.end_ms;
    *longest_run_ms = std::max(*longest_run_ms, previous_end);
    last[entry.output] = entry;
  }
  std::vector<Entry> entries;
  std::set<std::pair<long, long>> seen;  // one command with two outputs has two lines with the same times
  for (auto& [output, entry] : last) {
    if (seen.emplace(entry.start_ms, entry.end_ms).second) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.end_ms - a.start_ms > b.end_ms - b.start_ms; });
  return entries;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: buildtime BUILD_DIR [SUBSTRING]\n");
    return 2;
  }
  std::string path = std::string(argv[1]) + "/.ninja_log";
  std::ifstream in(path);
  if (!in) {
    std::fprintf(stderr, "buildtime: cannot read %s: was it built with Ninja?\n", path.c_str());
    return 1;
  }
  long longest_run_ms = 0;
  std::vector<Entry> entries = read_log(in, &longest_run_ms);
  if (argc == 3) {
    std::erase_if(entries, [&](const Entry& e) { return e.output.find(argv[2]) == std::string::npos; });
  }
  long work_ms = 0;
  for (const Entry& e : entries) work_ms += e.end_ms - e.start_ms;
  std::printf("longest run %.1f s, %zu outputs, %.1f s of work; the slowest:\n",
              static_cast<double>(longest_run_ms) / 1e3, entries.size(), static_cast<double>(work_ms) / 1e3);
  size_t shown = argc == 3 ? entries.size() : std::min<size_t>(entries.size(), 10);
  for (size_t i = 0; i < shown; ++i) {
    const Entry& e = entries[i];
    std::printf("  %6.1f s  %s\n", static_cast<double>(e.end_ms - e.start_ms) / 1e3, e.output.c_str());
  }
  return 0;
}
