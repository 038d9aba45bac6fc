#pragma once
// The loss curve of a run as an SVG file, drawn from its metrics.
#include <string>

namespace gpt {

// Reads dir/metrics.jsonl, writes dir/loss.svg and returns its path.
std::string draw_curve(const std::string& dir);

}  // namespace gpt
