#pragma once
// Recorded operator calls (what PyTorch computes, as data): reads the cases of a .jsonl file and its .safetensors, runs
// each through Vesta and says where the result differs. Behind `vesta check` and the golden tests. Cases come from the
// developer's own recordings: malformed ones are an error of the file, not of an op.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vesta::golden {

// Differences that are meant: "ID-PATTERN  reason" a line, '#' starts a comment; the pattern may hold * and ?.
struct AcceptedDifference {
  std::string pattern, reason;
  int failed = 0, passed = 0;  // cases that matched it in this run
};
class Exceptions {
 public:
  explicit Exceptions(std::string_view text);
  AcceptedDifference* find(std::string_view case_id);
  std::vector<AcceptedDifference> list;
};
bool matches(std::string_view pattern, std::string_view text);

enum class Outcome { Passed, Failed, Accepted, NotRegistered };

struct CaseResult {
  std::string id, op;  // "addmm.default/17", "addmm" or "add.Tensor"
  Outcome outcome = Outcome::Passed;
  std::string message;  // what was wanted and what came; the reason where accepted
};

struct Summary {
  int cases = 0, passed = 0, failed = 0, accepted = 0, not_registered = 0;
  std::map<std::string, int> missing_ops;            // op: cases
  std::map<std::string, std::pair<int, int>> by_op;  // op: cases run, cases failed
};

struct CheckOptions {
  std::string op;                                     // only this op ("add", or "add.Tensor"); empty = all
  std::function<void(const std::string& id)> before;  // called before a case runs
  std::function<void(const CaseResult&)> after;
};

// Runs the cases of one file and adds to `summary`. IoError where the file or its tensors cannot be read.
void check_file(const std::string& jsonl_path, const CheckOptions& options, Exceptions& exceptions,
                Summary& summary);

}  // namespace vesta::golden
