// layers src/LAYERS: checks that each file of src/ and include/vesta/ includes only what its folder may include,
// that includes are written from src/ on, and that no file includes itself through others. Also prints the ten
// longest files, as a hint where one has become too full.
// Reads only the text of #include lines: it neither preprocesses nor knows which branch of an #if is taken.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Include {
  std::string path;  // as written
  int line;
  bool quoted;
};

struct File {
  std::string folder;  // layer that owns it; "top" for files at the top of src/
  std::vector<Include> includes;
  int lines = 0;
};

struct Rules {
  std::map<std::string, std::set<std::string>> allowed;
  std::map<std::string, std::string> header_folder;
};

// Owner of generated public headers, and of public headers that src/LAYERS does not name.
constexpr const char* kDefaultOwner = "core";

int error_count = 0;

void report(const std::string& where, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: %s\n", where.c_str(), line, message.c_str());
  ++error_count;
}

Rules read_rules(const fs::path& path) {
  Rules rules;
  std::ifstream in(path);
  if (!in) report(path.string(), 0, "cannot be read");
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    text = text.substr(0, text.find('#'));
    std::istringstream words(text);
    std::string folder, word;
    if (!(words >> folder)) continue;
    bool is_headers = false;
    if (folder.back() == ':') {
      folder.pop_back();
    } else if (words >> word && word == "=") {
      is_headers = true;
    } else {
      report(path.string(), line, "expected 'FOLDER: FOLDERS' or 'FOLDER = HEADERS'");
      continue;
    }
    if (!is_headers) rules.allowed[folder];
    while (words >> word) {
      if (is_headers) {
        rules.header_folder[word] = folder;
      } else if (!rules.allowed.count(word)) {
        report(path.string(), line, "'" + word + "' has no line above: layers point down");
      } else {
        rules.allowed[folder].insert(word);
      }
    }
  }
  return rules;
}

File read_file(const fs::path& path) {
  File file;
  std::ifstream in(path);
  std::string text;
  while (std::getline(in, text)) {
    ++file.lines;
    size_t at = text.find_first_not_of(" \t");
    if (at == std::string::npos || text[at] != '#') continue;
    at = text.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || text.compare(at, 7, "include") != 0) continue;
    size_t open = text.find_first_of("\"<", at);
    if (open == std::string::npos) continue;
    size_t close = text.find_first_of("\">", open + 1);
    if (close == std::string::npos) continue;
    file.includes.push_back({text.substr(open + 1, close - open - 1), file.lines, text[open] == '"'});
  }
  return file;
}

using Files =
    std::map<std::string, File>;  // by path from src/ ("core/tensor.cpp") or include/ ("vesta/tensor.h")

// The longest folder of LAYERS that holds the file, so that kernels/templates can have a rule of its own; "top" for
// files at the top of src/, empty if there is none.
std::string owner_of(const std::string& name, const Rules& rules) {
  size_t slash = name.rfind('/');
  if (slash == std::string::npos) return "top";
  for (std::string folder = name.substr(0, slash);; folder.resize(slash)) {
    if (rules.allowed.count(folder)) return folder;
    slash = folder.rfind('/');
    if (slash == std::string::npos) return "";
  }
}

void read_tree(const fs::path& root, bool is_public, const Rules& rules, Files& files) {
  if (!fs::exists(root)) return;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    static const std::set<std::string> kSuffixes = {".h", ".cpp", ".def", ".inc", ".S"};
    if (!entry.is_regular_file() || !kSuffixes.count(entry.path().extension().string())) continue;
    std::string name = entry.path().lexically_relative(root).generic_string();
    File file = read_file(entry.path());
    if (is_public) {
      std::string header = name.substr(name.find('/') + 1);
      auto owner = rules.header_folder.find(header);
      file.folder = owner == rules.header_folder.end() ? kDefaultOwner : owner->second;
    } else {
      file.folder = owner_of(name, rules);
      if (file.folder.empty()) {
        report("src/" + name, 1, "folder '" + name.substr(0, name.find('/')) + "' has no line in src/LAYERS");
        continue;
      }
    }
    files[name] = std::move(file);
  }
}

std::string shown(const std::string& name) {
  return (name.starts_with("vesta/") ? "include/" : "src/") + name;
}

void check_layers(const Files& files, const Rules& rules) {
  for (const auto& [name, file] : files) {
    if (file.folder == "top") continue;
    const auto& allowed = rules.allowed.at(file.folder);
    for (const Include& include : file.includes) {
      std::string folder;
      auto target = files.find(include.path);
      if (target != files.end()) {
        folder = target->second.folder;
      } else if (include.path.starts_with("vesta/gen/")) {
        folder = kDefaultOwner;
      } else {
        std::string beside =
            fs::path(name).parent_path().append(include.path).lexically_normal().generic_string();
        if (include.quoted && files.count(beside)) {
          report(shown(name), include.line,
                 "\"" + include.path + "\": write it from src/ on: \"" + beside + "\"");
        }
        continue;  // a system, third-party or generated header
      }
      if (folder != file.folder && !allowed.count(folder)) {
        report(
            shown(name), include.line,
            "'" + file.folder + "' may not include '" + folder + "' (" + include.path + "); see src/LAYERS");
      }
    }
  }
}

// Depth-first search; `path` holds the files being visited, so a repeated one closes a cycle.
void find_cycle(const Files& files, const std::string& name, std::set<std::string>& done,
                std::vector<std::string>& path) {
  auto repeated = std::find(path.begin(), path.end(), name);
  if (repeated != path.end()) {
    std::string cycle;
    for (auto it = repeated; it != path.end(); ++it) cycle += *it + " -> ";
    report(shown(name), 1, "include cycle: " + cycle + name);
    return;
  }
  auto file = files.find(name);
  if (file == files.end() || done.count(name)) return;
  path.push_back(name);
  for (const Include& include : file->second.includes) find_cycle(files, include.path, done, path);
  path.pop_back();
  done.insert(name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: layers src/LAYERS\n");
    return 2;
  }
  fs::path rules_path = argv[1];
  fs::path src = rules_path.has_parent_path() ? rules_path.parent_path() : fs::path(".");
  Rules rules = read_rules(rules_path);
  Files files;
  read_tree(src, false, rules, files);
  read_tree(src / ".." / "include", true, rules, files);
  check_layers(files, rules);
  std::set<std::string> done;
  for (const auto& entry : files) {
    std::vector<std::string> path;
    find_cycle(files, entry.first, done, path);
  }
  if (error_count) {
    std::fprintf(stderr, "layers: %d wrong\n", error_count);
    return 1;
  }
  std::vector<std::pair<int, std::string>> longest;
  for (const auto& [name, file] : files) longest.emplace_back(-file.lines, shown(name));
  std::sort(longest.begin(), longest.end());
  std::printf("layers: %zu files follow %s; the longest:\n", files.size(), argv[1]);
  for (size_t i = 0; i < longest.size() && i < 10; ++i) {
    std::printf("  %5d  %s\n", -longest[i].first, longest[i].second.c_str());
  }
  return 0;
}
