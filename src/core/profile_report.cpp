// Tables and Chrome traces of a recording.
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/file.h"
#include "core/profile_data.h"

namespace vesta::profiler {
namespace {

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string time_text(int64_t ns) {
  if (ns < 10'000) return number("%.0f ns", double(ns));
  if (ns < 10'000'000) return number("%.1f us", double(ns) / 1e3);
  if (ns < 10'000'000'000) return number("%.1f ms", double(ns) / 1e6);
  return number("%.1f s", double(ns) / 1e9);
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 10'000) return number("%.0f B", double(bytes));
  if (bytes < 10'000'000) return number("%.1f KiB", double(bytes) / 1024);
  if (bytes < 10'000'000'000) return number("%.1f MiB", double(bytes) / (1024 * 1024));
  return number("%.1f GiB", double(bytes) / (1024.0 * 1024 * 1024));
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

const std::vector<Event>& Profile::events() const { return data_->events; }
int Profile::num_threads() const { return int(data_->threads.size()); }
int64_t Profile::wall_ns() const { return data_->wall_ns; }
int64_t Profile::peak_bytes() const { return data_->whole.peak - data_->whole.begin; }

std::vector<Summary> Profile::by_op(bool by_shapes) const {
  const std::vector<Event>& all = data_->events;
  std::vector<int64_t> children(all.size(), 0);
  for (auto& e : all)
    if (e.parent >= 0) children[size_t(e.parent)] += e.end_ns - e.begin_ns;
  std::map<std::pair<std::string_view, std::string_view>, Summary> sums;
  for (size_t i = 0; i < all.size(); ++i) {
    const Event& e = all[i];
    Summary& s = sums[{e.name, by_shapes ? std::string_view(e.shapes) : std::string_view()}];
    if (!s.calls) {
      s.name = e.name;
      if (by_shapes) s.shapes = e.shapes;
    }
    ++s.calls;
    s.self_ns += e.end_ns - e.begin_ns - children[i];
    bool inside_itself = false;
    for (int p = e.parent; p >= 0 && !inside_itself; p = all[size_t(p)].parent)
      inside_itself = all[size_t(p)].name == e.name;
    if (!inside_itself) s.total_ns += e.end_ns - e.begin_ns;
    s.bytes += e.bytes;
    s.peak_bytes = std::max(s.peak_bytes, e.peak_bytes);
  }
  std::vector<Summary> list;
  for (auto& [key, s] : sums) list.push_back(std::move(s));
  std::stable_sort(list.begin(), list.end(),
                   [](const Summary& a, const Summary& b) { return a.self_ns > b.self_ns; });
  return list;
}

std::string Profile::table(size_t rows, bool by_shapes) const {
  std::vector<Summary> list = by_op(by_shapes);
  size_t width = 8;
  for (size_t i = 0; i < std::min(rows, list.size()); ++i) width = std::max(width, list[i].name.size());
  width = std::min<size_t>(width, 48);
  char line[256];
  std::string text;
  auto add = [&](const std::string& name, const std::string& self, const std::string& share,
                 const std::string& total, const std::string& calls, const std::string& each,
                 const std::string& bytes, const std::string& peak, const std::string& shapes) {
    std::snprintf(line, sizeof line, "%-*.*s %10s %6s %10s %8s %10s %10s %10s  ", int(width), int(width),
                  name.c_str(), self.c_str(), share.c_str(), total.c_str(), calls.c_str(), each.c_str(),
                  bytes.c_str(), peak.c_str());
    text += line + shapes;
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text += '\n';
  };
  add("op", "self", "self%", "total", "calls", "total/call", "results", "peak", by_shapes ? "shapes" : "");
  double wall = double(std::max<int64_t>(wall_ns(), 1));
  int64_t self = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const Summary& s = list[i];
    self += s.self_ns;
    if (i < rows)
      add(s.name, time_text(s.self_ns), number("%.1f%%", 100 * double(s.self_ns) / wall),
          time_text(s.total_ns), std::to_string(s.calls), time_text(s.total_ns / s.calls),
          bytes_text(s.bytes), bytes_text(s.peak_bytes), s.shapes);
  }
  if (list.size() > rows) text += "... and " + std::to_string(list.size() - rows) + " more\n";
  text += "wall " + time_text(wall_ns()) + ", in operators and ranges " + time_text(self);
  if (num_threads() > 1) text += " on " + std::to_string(num_threads()) + " threads";
  text += ", peak memory " + bytes_text(peak_bytes()) + "\n";
  return text;
}

void Profile::write_chrome_trace(const std::string& path) const {
  AtomicFile file(path);
  file.write("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
  std::string text;
  for (int t = 0; t < num_threads(); ++t) {
    std::string id = std::to_string(t + 1);
    text += (t ? ",\n" : "\n") + std::string("{\"ph\": \"M\", \"pid\": 1, \"tid\": ") + id +
            ", \"name\": \"thread_name\", \"args\": {\"name\": " +
            (t ? "\"thread " + id + "\"" : "\"recording thread\"") + "}}";
  }
  for (auto& e : data_->events) {
    text += ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": " + std::to_string(e.thread + 1) +
            ", \"name\": " + json_text(e.name) + number(", \"ts\": %.3f", double(e.begin_ns) / 1e3) +
            number(", \"dur\": %.3f", double(e.end_ns - e.begin_ns) / 1e3) +
            ", \"args\": {\"result_bytes\": " + std::to_string(e.bytes) +
            ", \"peak_bytes\": " + std::to_string(e.peak_bytes);
    if (!e.shapes.empty()) text += ", \"shapes\": " + json_text(e.shapes);
    text += "}}";
    if (text.size() > (1 << 20)) {
      file.write(text);
      text.clear();
    }
  }
  file.write(text + "\n]}\n");
  file.commit();
}

}  // namespace vesta::profiler
